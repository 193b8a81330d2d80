import { ADMIN } from './api/client.ts'

const ASK_AGAIN_MS = 2_000
const READ_AHEAD_AFTER_MS = 500
const RELOADED_AT = 'pombal.reloaded'
/** Whoever reloads again so soon would do so for ever. */
const RELOAD_AGAIN_AFTER_MS = 20_000

/** Every page is a script of its own. */
export const pages = {
  signIn: () => import('./pages/sign-in.tsx'),
  instances: () => import('./pages/instances.tsx'),
  settings: () => import('./pages/settings.tsx'),
  instance: () => import('./pages/instance.tsx'),
  overview: () => import('./pages/overview.tsx'),
  messages: () => import('./pages/messages.tsx'),
  events: () => import('./pages/events.tsx'),
  webhook: () => import('./pages/webhook.tsx'),
  phone: () => import('./pages/phone.tsx'),
  instanceSettings: () => import('./pages/instance-settings.tsx'),
}

/** Reads every page while nothing else happens: the next click is quick, and needs no service that answers. */
export function readPagesAhead(): () => void {
  const timer = setTimeout(() => {
    for (const load of Object.values(pages)) load().catch(() => undefined)
  }, READ_AHEAD_AFTER_MS)
  return () => clearTimeout(timer)
}

/**
 * A page whose script cannot be read: once the service answers, the browser opens the address anew. Not before, or it
 * would show its own error page in place of the panel. Where the scripts of an older version are gone, this fetches the new ones.
 */
export function patiently<T>(load: () => Promise<T>): () => Promise<T> {
  return async () => {
    try {
      return await load()
    } catch (error) {
      await untilServiceAnswers()
      if (Date.now() - Number(sessionStorage.getItem(RELOADED_AT)) < RELOAD_AGAIN_AFTER_MS) throw error
      sessionStorage.setItem(RELOADED_AT, String(Date.now()))
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
