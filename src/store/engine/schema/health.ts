import type { Generated } from 'kysely'

/**
 * Numbers, LIDs and groups that wrote to the instance, or that one of its messages reached, since the account was linked; and
 * strangers.
 */
export interface ContactsTable {
  instance_id: string
  /** A number, or the address of a LID or group. */
  number: string
  /** The latest message, give or take a minute. Null: another row of the same person is the chat. */
  last_at: Generated<number | null>
  /** The LID address of a number. */
  lid: Generated<string | null>
  /** A JSON string, like the next column. */
  username: Generated<string | null>
  /** The push name. */
  name: Generated<string | null>
  /** 1: the phone knows it, or it wrote in a group, but no message was exchanged. */
  stranger: Generated<number>
  /** The name in the phone's address book, a JSON string. */
  saved_name: Generated<string | null>
  /** The folded `saved_name` and `name`, for searches. */
  search_saved: Generated<string | null>
  search_name: Generated<string | null>
}

export interface ConnectionHealthTable {
  instance_id: string
  last_frame_at: number | null
  /** Set together. */
  ack_at: number | null
  ack_latency_ms: number | null
  undecryptable: number
  undecryptable_at: number | null
}

/** Socket closes. Recording one deletes those older than a day. */
export interface ConnectionClosesTable {
  instance_id: string
  at: number
  code: number
}
