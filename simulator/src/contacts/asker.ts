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
