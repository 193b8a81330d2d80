import { ADMIN } from './api/client.ts'

const ASK_AGAIN_MS = 2_000
const READ_AHEAD_AFTER_MS = 500
const RELOADED_AT = 'pombal.reloaded'
/** A page that needs a second reload within this time would reload for ever. */
const RELOAD_AGAIN_AFTER_MS = 20_000

/** Every page has its own script. */
export const pages = {
  signIn: () => import('./pages/sign-in.tsx'),
  instances: () => import('./pages/instances/instances.tsx'),
  settings: () => import('./pages/settings.tsx'),
  people: () => import('./pages/people/people.tsx'),
  invitation: () => import('./pages/people/invitation.tsx'),
  audit: () => import('./pages/people/audit.tsx'),
  alerts: () => import('./pages/alerts/alerts.tsx'),
  instance: () => import('./pages/instance/instance.tsx'),
  overview: () => import('./pages/instance/overview.tsx'),
  inbox: () => import('./pages/inbox/inbox.tsx'),
  messages: () => import('./pages/messages/messages.tsx'),
  events: () => import('./pages/events/events.tsx'),
  webhook: () => import('./pages/webhook/webhook.tsx'),
  files: () => import('./pages/files/files.tsx'),
  phone: () => import('./pages/phone/phone.tsx'),
  instanceSettings: () => import('./pages/instance/instance-settings.tsx'),
}

/** Loads every page in idle time. The next click is then quick and does not depend on the service. */
export function readPagesAhead(): () => void {
  const timer = setTimeout(() => {
    for (const load of Object.values(pages)) load().catch(() => undefined)
  }, READ_AHEAD_AFTER_MS)
  return () => clearTimeout(timer)
}

/**
 * Loads a page's script. If that fails, waits until the service answers and reloads the page; an earlier reload would
 * show the browser's error page. If the scripts of an older version are gone, the reload fetches the new ones.
 */
export function reloadOnFailure<T>(load: () => Promise<T>): () => Promise<T> {
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
