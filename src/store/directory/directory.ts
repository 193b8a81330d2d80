import type { InstanceId } from '../../domain/ids.ts'
import type { HeardContact } from '../../domain/recipients/contact.ts'
import type {
  GroupChange,
  GroupDetails,
  GroupFacts,
  GroupMember,
  GroupNotice,
  OwnAddresses,
} from '../../domain/recipients/group.ts'
import type { Page, PageRequest } from '../engine/page.ts'
import type { Lease } from '../leases/leases.ts'

/** A group that the account is a member of. */
export interface ListedGroup extends GroupFacts {
  id: string
  /** The time of WhatsApp's last answer or notification about the group. */
  asOf: number
}

export interface DescribedGroup extends ListedGroup {
  description: string | null
  /** The members, with their names if these are known. */
  members: readonly (GroupMember & { name: string | null })[]
}

/** The state of a group as the owner knows it. */
export interface KnownGroup {
  /** Null: the account is not a member. */
  details: GroupDetails | null
  asOf: number
  /** The time of WhatsApp's last answer to a query about this group; 0 if there was none. */
  queriedAt: number
}

export interface DueGroup {
  id: string
  /** The account has just become a member. */
  hasJoined: boolean
  /** The time of WhatsApp's last answer to a query about this group; 0 if there was none. */
  queriedAt: number
}

/** A person whom the phone knows, or with whom messages were exchanged. */
export interface DirectoryContact {
  /** As `to` of a message: a number, or a LID if the number is unknown. */
  chat: string
  phone: string | null
  lid: string | null
  username: string | null
  /** As the phone's address book has it. */
  name: string | null
  /** As the person has chosen it. */
  pushName: string | null
  /** Accurate to about a minute. Null: no message since the account was linked. */
  lastMessageAt: number | null
}

/**
 * The groups and contacts of the linked account, as WhatsApp last reported them. They are erased when the account is unlinked
 * or the instance is deleted.
 */
export interface Directory {
  /** Lists groups in the order of their subjects. @param search part of a subject */
  listGroups(instanceId: InstanceId, page: PageRequest, search?: string): Promise<Page<ListedGroup>>
  /** Null unless the account is a member. */
  findGroup(instanceId: InstanceId, id: string): Promise<DescribedGroup | null>
  /**
   * Lists contacts in the order of their names, contacts without a name last.
   * @param search part of a name or number
   */
  listContacts(instanceId: InstanceId, page: PageRequest, search?: string): Promise<Page<DirectoryContact>>

  readGroup(instanceId: InstanceId, id: string): Promise<KnownGroup | null>
  /**
   * Records WhatsApp's descriptions of groups, in several commits. A group that a notification has changed since
   * `askedAt` stays as it is.
   * @param reason `listed`: the answer was about all groups, and does not count as a query about each of them
   */
  recordGroups(
    lease: Lease,
    groups: readonly GroupDetails[],
    of: { self: OwnAddresses; askedAt: number; now: number; reason: 'listed' | 'queried' },
  ): Promise<void>
  /**
   * WhatsApp has answered that the account may not see the group. A group that was recorded or has become due since
   * `askedAt` stays so, because a notification may have changed it. If the account is a member in it, the answer does not
   * count as a query: a list of all groups that was requested earlier may also have been recorded since `askedAt`.
   */
  recordNoMember(lease: Lease, id: string, of: { askedAt: number; now: number }): Promise<void>
  /**
   * Records the changes of one notification in one commit, in their order.
   * `unknown`: it was recorded that the group has to be queried (`listDueGroups`).
   * @param of.notice a notice that was recorded before changes nothing, even if the group has changed since
   */
  recordGroupChanges(
    lease: Lease,
    id: string,
    changes: readonly GroupChange[],
    of: { self: OwnAddresses; now: number; notice?: GroupNotice | null },
  ): Promise<'recorded' | 'unknown'>

  /** Groups that WhatsApp has to describe because of a notification. */
  listDueGroups(instanceId: InstanceId): Promise<DueGroup[]>

  /** Adds or replaces names, in several commits, and never removes any. */
  recordContacts(lease: Lease, contacts: readonly HeardContact[]): Promise<void>

  /** Which parts were recorded completely since the account was linked. */
  findFilled(instanceId: InstanceId): Promise<{ groups: boolean; contacts: boolean }>
  /** @param at when all contacts were recorded; null if some are missing */
  recordContactsFilled(lease: Lease, at: number | null): Promise<void>
  /** @param ids all groups of the account. Others are marked as left, unless they were recorded since `askedAt` */
  recordGroupsFilled(lease: Lease, ids: readonly string[], of: { askedAt: number; now: number }): Promise<void>
}
