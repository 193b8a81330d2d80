export interface HandoutsTable {
  instance_id: string
  id: string
  /** SHA-256 of the link's token. */
  token_digest: Uint8Array
  title: string | null
  return_url: string | null
  created_at: number
  /** On the database's clock, like the other times below. */
  expires_at: number
  /** SHA-256 of the cookie of the first browser that requested a code. No other browser can use the link. */
  browser_digest: Uint8Array | null
  opened_at: number | null
  /** The last request for a code. */
  requested_at: number | null
  /** The goal version of the connection, set by the last request. */
  goal_version: number | null
  /** How many pairing codes were requested. */
  pairing_codes: number
  /** When a number was linked. */
  used_at: number | null
  /** The account that created the link. Null: a caller without an account, or a node of an earlier version. */
  created_by: string | null
}

/** A person's answer in a linking with a passkey: at most one per instance, for at most a minute. */
export interface PasskeyAnswersTable {
  instance_id: string
  /** The goal version of the connection when the answer was given. */
  goal_version: number
  /** The epoch of the owner that asked for the answer. */
  epoch: number
  /** Sealed JSON. */
  answer: Uint8Array
  /** On the database's clock. */
  answered_at: number
}
