import type { Account, Client } from '../account.ts'
import type { Network } from '../network.ts'
import type { Node } from '../wire/nodes.ts'

/** The client that sent the query. */
export interface Asker {
  network: Network
  account: Account
  client: Client
  /** From now on stanzas are sent at once. */
  markCaughtUp(): void
}

export type Answer = Node[] | { error: string; text: string }

/** WhatsApp's refusal of a query that it does not understand. */
export const BAD_REQUEST = { error: '400', text: 'bad-request' } as const satisfies Answer
export const FORBIDDEN = { error: '403', text: 'forbidden' } as const satisfies Answer
export const NOT_FOUND = { error: '404', text: 'item-not-found' } as const satisfies Answer
export const NOT_ACCEPTABLE = { error: '406', text: 'not-acceptable' } as const satisfies Answer
