import type { Generated } from 'kysely'

/** Groups that WhatsApp has described, announced or refused to describe since the account was linked. */
export interface GroupsTable {
  instance_id: string
  id: string
  /**
   * 0: the account is not a member, or the group was not described yet. The other facts are then empty, but a group that
   * it has left keeps its subject.
   */
  member: number
  /** The folded subject. Searches and the order of lists use it. */
  search_name: string
  /** A JSON string. */
  subject: string
  member_count: number
  can_send: number
  is_admin: number
  /** The time of WhatsApp's last answer or notification about the group. */
  as_of: number
  /** The time of WhatsApp's last answer to a query of this group. */
  queried_at: number
  /** A JSON object: the rest of `GroupDetails`, which is absent if `member` is 0, and `notices` (`KnownNotices`). */
  details: string
  /** When a notification last made a query of this group necessary. Null if there was none since the last answer. */
  query_due_at: Generated<number | null>
  /** 1: a notification since the last answer said that the account has just become a member. */
  has_joined: Generated<number>
}

/** When each part of the directory was read from WhatsApp. Null if it was not read since the account was linked. */
export interface DirectoryFillsTable {
  instance_id: string
  groups_at: number | null
  contacts_at: Generated<number | null>
}

/** Look-ups that a caller waits for. The owner removes each when it has the answer. */
export interface NumberOrdersTable {
  instance_id: string
  number: string
  /** On the database's clock. */
  ordered_at: number
}

export interface NumberBudgetsTable {
  instance_id: string
  /** Days since 1970 in UTC, on the database's clock. */
  day: number
  /** How many unknown numbers callers asked to look up on that day. */
  used: number
}

/**
 * Numbers, LIDs and groups that wrote to the instance, or to which it sent a message that WhatsApp acknowledged, since the
 * account was linked; and strangers.
 */
export interface ContactsTable {
  instance_id: string
  /** A number, or the address of a LID or group. */
  number: string
  /**
   * The time of the latest message, at most a minute behind. Null if none is known, or another row of the person is the
   * chat.
   */
  last_at: Generated<number | null>
  /** The LID address of a number. */
  lid: Generated<string | null>
  /** A JSON string, like the next column. */
  username: Generated<string | null>
  /** The push name. */
  name: Generated<string | null>
  /** 1: the phone knows it, or it wrote in a group, but neither side has written to the other directly. */
  stranger: Generated<number>
  /** The name in the phone's address book, a JSON string. */
  saved_name: Generated<string | null>
  /** The folded `saved_name` and `name`, for searches. */
  search_saved: Generated<string | null>
  search_name: Generated<string | null>
}
