/** Orders from one node for a simulated phone that another node runs. */
export interface PhoneOrdersTable {
  instance_id: string
  id: string
  /** On the database's clock. */
  left_at: number
  /** Null once the owner has taken the order. */
  body: string | null
  answer: string | null
}

/** Counts of wrong admin keys and passwords by the caller's network, the name that was tried, or the browser. */
export interface WrongKeysTable {
  /** The key of a limit: a network, or a name, browser or account after a word such as `name` or `device`. */
  address: string
  /** On the database's clock. */
  ends_at: number
  count: number
}
