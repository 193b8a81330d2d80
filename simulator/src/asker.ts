import type { Account, Client } from './account.ts'
import type { Network } from './network.ts'
import type { Node } from './nodes.ts'

/** The one who asks. */
export interface Asker {
  network: Network
  account: Account
  client: Client
  /** From now on stanzas go out as they come. */
  markCaughtUp(): void
}

export type Answer = Node[] | { error: string; text: string }
