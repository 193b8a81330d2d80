/** Groups, and what people change in them. */
import type { Picture } from '../profiles/profile.ts'

export interface GroupMember {
  number: string
  role?: 'admin' | 'superadmin' | undefined
}

/** Somebody who wants to join a group whose admins approve new members. */
export interface JoinRequest {
  number: string
  /** Seconds since the epoch. */
  at: number
  method: 'invite_link' | 'non_admin_add'
  /** Who wanted to add the person. */
  requestor?: string | undefined
}

/** Times are in seconds since the epoch. */
export interface Group {
  /**
   * True for a group that nobody created. Every account counts as a member until it leaves or is removed. Accounts that were
   * not added by a change or by `/members` each see a member list of their own.
   */
  isDefault?: boolean
  subject: string
  /** Who changed the subject, and when. Undefined if nobody has. */
  subjectBy?: string
  subjectAt?: number
  createdAt: number
  creator: string
  members: readonly GroupMember[]
  description?: { id: string; text: string; by: string; at: number } | undefined
  picture?: Picture | undefined
  /** True if only admins may write. */
  announcement?: boolean
  /** True if only admins may change the subject, the description, the picture and the timer. */
  locked?: boolean
  /** True if every member may add members. */
  everybodyAdds?: boolean
  /** True if admins decide who joins. */
  approval?: boolean
  requests?: readonly JoinRequest[]
  /** Messages disappear after this many seconds. 0 or undefined: never. */
  expiration?: number
  /** The code of the invitation link, once somebody has asked for it. */
  invite?: string
  revokedInvites?: readonly string[]
  personalInvites?: readonly PersonalInvite[]
}

/** An invitation for a person whom nobody may add. An admin's program sends it in a message. */
export interface PersonalInvite {
  number: string
  code: string
  /** Seconds since the epoch. */
  expiration: number
}

/** Changes that a person makes to a group. They are applied one after the other. */
export interface GroupChange {
  /** The number of the person who makes the change: a member, or an account's owner acting on the phone. Default: the first admin. */
  by?: string
  /** Number of an account in the group. Default: an account that is in the group, else the only account. */
  account?: string
  subject?: string
  /** An empty text removes it. */
  description?: string
  /** True: only admins may write. */
  announcement?: boolean
  /** True: only admins may change the subject, the description, the picture and the timer. */
  locked?: boolean
  /** True: every member may add members. */
  everybodyAdds?: boolean
  /** True: admins decide who joins. */
  approval?: boolean
  /** Messages disappear after this many seconds; 0: never. */
  expiration?: number
  add?: string[]
  remove?: string[]
  promote?: string[]
  demote?: string[]
  /** Decides on requests to join. */
  approve?: string[]
  reject?: string[]
  /** `get` creates an invitation code if there is none. `revoke` replaces it. */
  invite?: 'get' | 'revoke'
  /** The person joins with this invitation code, or asks to join if admins decide. */
  join?: string
  leave?: true
}

/** A group as an account knows it. */
export interface GroupState
  extends Omit<
    Group,
    'description' | 'picture' | 'isDefault' | 'revokedInvites' | 'personalInvites' | 'subjectBy' | 'subjectAt'
  > {
  group: string
  description?: string
}
