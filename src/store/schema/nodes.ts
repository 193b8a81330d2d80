/** The processes that run instances. */
export interface NodesTable {
  id: string
  /** Both on the database's clock. */
  started_at: number
  seen_until: number
}
