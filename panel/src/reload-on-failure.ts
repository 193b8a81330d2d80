import { ADMIN } from './api/client.ts'
import { readStored, store } from './storage.ts'

const ASK_AGAIN_MS = 2_000
const RELOADED_AT = 'pombal.reloaded'
/** A page that needs a second reload within this time would reload for ever. */
const RELOAD_AGAIN_AFTER_MS = 20_000

/**
 * Loads a script. If that fails, waits until the service answers and reloads the page; an earlier reload would
 * show the browser's error page. If the scripts of an older version are gone, the reload fetches the new ones.
 */
export function reloadOnFailure<T>(load: () => Promise<T>): () => Promise<T> {
  return async () => {
    try {
      return await load()
    } catch (error) {
      await untilServiceAnswers()
      if (Date.now() - Number(readStored('sessionStorage', RELOADED_AT)) < RELOAD_AGAIN_AFTER_MS) throw error
      // Without storage the page could reload for ever.
      if (!store('sessionStorage', RELOADED_AT, String(Date.now()))) throw error
      window.location.reload()
      return new Promise<never>(() => {})
    }
  }
}

async function untilServiceAnswers(): Promise<void> {
  for (;;) {
    const status = await fetch(`${ADMIN}/session`, { credentials: 'same-origin' }).then(
      response => response.status,
      () => null,
    )
    if (status !== null && status < 500) return
    await new Promise(resolve => setTimeout(resolve, ASK_AGAIN_MS))
  }
}
