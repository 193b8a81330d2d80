const READ_AHEAD_AFTER_MS = 500

/** Every page has its own script. */
export const pages = {
  signIn: () => import('./pages/sign-in.tsx'),
  instances: () => import('./pages/instances/instances.tsx'),
  settings: () => import('./pages/settings.tsx'),
  people: () => import('./pages/people/people.tsx'),
  invitation: () => import('./pages/people/invitation.tsx'),
  link: () => import('./pages/link/link-page.tsx'),
  audit: () => import('./pages/people/audit.tsx'),
  alerts: () => import('./pages/alerts/alerts.tsx'),
  guides: () => import('./pages/guides/guides.tsx'),
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
