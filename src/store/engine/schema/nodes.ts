import type { Generated } from 'kysely'

/** The processes that run instances. */
export interface NodesTable {
  id: string
  /** Both on the database's clock. */
  started_at: number
  seen_until: number
  /** 1 if the node runs sandbox instances. Older versions leave the default, 1. */
  sandbox: Generated<number>
  /** 1 if the node delivers to endpoints. Older versions leave the default, 0. */
  endpoints: Generated<number>
  /** 1 if the node sends files. Older versions leave the default, 0. */
  media: Generated<number>
  /** The same for quotes, commands and scheduled messages. */
  conversations: Generated<number>
  /** The same for files that are fetched from a URL. */
  urls: Generated<number>
  /** The same for events about connections, which also go to operator endpoints. */
  operator_endpoints: Generated<number>
  /** JSON of the settings that all nodes must share. Older versions leave it null. */
  settings: string | null
}
