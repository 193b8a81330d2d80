import type { QueryClient } from '@tanstack/react-query'
import { sessionQuery } from './queries.ts'
import type { Session } from './types.ts'

const NAME = 'pombal.signed-in'

/** The same for every session of an account. */
export function accountOf({ account }: Session): string {
  return account?.id ?? 'admin key'
}

/** Reports a sign-in to the other tabs of this browser, which have the same cookie. */
export function reportSignIn(session: Session): void {
  const channel = new BroadcastChannel(NAME)
  channel.postMessage(accountOf(session))
  channel.close()
}

/** Reloads the page when another tab signs in with another account: this page shows data and unsent texts of the former account. */
export function followSignIns(client: QueryClient): void {
  new BroadcastChannel(NAME).addEventListener('message', ({ data }) => {
    const session = client.getQueryData(sessionQuery.queryKey)
    if (session && accountOf(session) !== data) window.location.reload()
  })
}
