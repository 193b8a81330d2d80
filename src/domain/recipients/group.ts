export const GROUP_ROLES = ['member', 'admin', 'owner'] as const
export type GroupRole = (typeof GROUP_ROLES)[number]

/** A member of a group. At least one of its addresses is known. */
export interface GroupMember {
  /** Digits only. */
  phone: string | null
  /** `digits@lid` */
  lid: string | null
  role: GroupRole
}

/** A group as WhatsApp describes it. */
export interface GroupDetails {
  /** `digits@g.us` */
  id: string
  subject: string
  description: string | null
  /** WhatsApp may list fewer members than a group has. */
  memberCount: number
  members: readonly GroupMember[]
  /** How WhatsApp addresses the members. */
  addressing: 'lid' | 'number'
  /** Only admins may write. */
  adminsOnly: boolean
  /** It only holds other groups. Nobody writes to it. */
  isCommunity: boolean
  /** Messages disappear after this many seconds; 0: never. */
  disappearsAfter: number
}

/** The account's own addresses, as `GroupMember` has them. */
export type OwnAddresses = Pick<GroupMember, 'phone' | 'lid'>

/** A change of a group that a notification reports. One notification may report several. */
export type GroupChange =
  | { kind: 'add' | 'remove' | 'promote' | 'demote'; members: readonly GroupMember[] }
  | { kind: 'subject'; subject: string }
  | { kind: 'description'; description: string | null }
  | { kind: 'admins_only'; adminsOnly: boolean }
  | { kind: 'disappearing'; disappearsAfter: number }
  /** The account is a member from now on. */
  | { kind: 'joined'; group: GroupDetails }
  /** The group does not exist any more. */
  | { kind: 'deleted' }
  /** The notification does not describe the change, such as a member's new number: the group has to be queried. */
  | { kind: 'unclear' }

/** Identifies a notification about a group, even if WhatsApp delivers it again. */
export interface GroupNotice {
  /** WhatsApp's ID of the stanza. */
  id: string
  /** WhatsApp's time, in seconds. */
  at: number
}

/** The fields of a group that callers see, except its members. */
export interface GroupFacts {
  subject: string
  memberCount: number
  canSend: boolean
  isAdmin: boolean
}

export const GROUP_CHANGES = ['subject', 'description', 'members', 'roles', 'canSend'] as const

/** The difference between two states of a group. */
export interface GroupDifference {
  /** Empty: no change is visible to callers. */
  changed: (typeof GROUP_CHANGES)[number][]
  added: GroupMember[]
  removed: GroupMember[]
  promoted: GroupMember[]
  demoted: GroupMember[]
}

export function isSameMember(one: OwnAddresses, other: OwnAddresses): boolean {
  return (one.lid !== null && one.lid === other.lid) || (one.phone !== null && one.phone === other.phone)
}

/** The group after the change; null if the account is not a member any more. Repeating a change changes nothing. */
export function applyChange(group: GroupDetails, change: GroupChange, self: OwnAddresses): GroupDetails | null {
  switch (change.kind) {
    case 'joined':
      return change.group
    case 'deleted':
      return null
    case 'unclear':
      return group
    case 'subject':
      return { ...group, subject: change.subject }
    case 'description':
      return { ...group, description: change.description }
    case 'admins_only':
      return { ...group, adminsOnly: change.adminsOnly }
    case 'disappearing':
      return { ...group, disappearsAfter: change.disappearsAfter }
    case 'remove':
      return change.members.some(member => isSameMember(member, self)) ? null : without(group, change.members)
    case 'add':
      return withNew(group, change.members)
    case 'promote':
    case 'demote': {
      const role = change.kind === 'promote' ? 'admin' : 'member'
      const concerned = new MemberSet(change.members)
      const members = group.members.map(
        member => (concerned.find(member) ? { ...member, role } : member) as GroupMember,
      )
      return { ...group, members }
    }
  }
}

/** The group after the changes of one notification, in their order. Repeating them changes nothing. */
export function applyChanges(
  group: GroupDetails | null,
  changes: readonly GroupChange[],
  self: OwnAddresses,
): GroupDetails | null {
  return changes.reduce<GroupDetails | null>((before, change) => {
    if (change.kind === 'joined') return change.group
    return before && applyChange(before, change, self)
  }, group)
}

/** Whether the account enters or leaves the group by these changes; null if none of them says so. */
export function ownStepIn(changes: readonly GroupChange[], self: OwnAddresses): 'enters' | 'leaves' | null {
  const last = changes.findLast(change => {
    if (change.kind !== 'add' && change.kind !== 'remove') return change.kind === 'deleted'
    return change.members.some(member => isSameMember(member, self))
  })
  if (last === undefined) return null
  return last.kind === 'add' ? 'enters' : 'leaves'
}

function without(group: GroupDetails, leavers: readonly GroupMember[]): GroupDetails {
  const gone = new MemberSet(leavers)
  const members = group.members.filter(member => !gone.find(member))
  return resized(group, members)
}

function withNew(group: GroupDetails, joiners: readonly GroupMember[]): GroupDetails {
  const known = new MemberSet(group.members)
  return resized(group, [...group.members, ...joiners.filter(member => !known.find(member))])
}

function resized(group: GroupDetails, members: readonly GroupMember[]): GroupDetails {
  const memberCount = Math.max(members.length, group.memberCount + members.length - group.members.length)
  return { ...group, members, memberCount }
}

export function factsOf(group: GroupDetails, self: OwnAddresses): GroupFacts {
  const { subject, memberCount, adminsOnly, isCommunity } = group
  const role = group.members.find(member => isSameMember(member, self))?.role ?? 'member'
  const isAdmin = role !== 'member'
  return { subject, memberCount, isAdmin, canSend: !isCommunity && (!adminsOnly || isAdmin) }
}

export function differenceOf(before: GroupDetails, after: GroupDetails, self: OwnAddresses): GroupDifference {
  const [old, now] = [new MemberSet(before.members), new MemberSet(after.members)]
  const added = after.members.filter(member => !old.find(member))
  const removed = before.members.filter(member => !now.find(member))
  const moved = after.members.flatMap(member => {
    const from = old.find(member)?.role
    return from === undefined || from === member.role ? [] : [{ member, isUp: rank(member.role) > rank(from) }]
  })
  const promoted = moved.filter(({ isUp }) => isUp).map(({ member }) => member)
  const demoted = moved.filter(({ isUp }) => !isUp).map(({ member }) => member)
  const isChanged = {
    subject: before.subject !== after.subject,
    description: before.description !== after.description,
    members: added.length > 0 || removed.length > 0,
    roles: moved.length > 0,
    canSend: factsOf(before, self).canSend !== factsOf(after, self).canSend,
  }
  return { changed: GROUP_CHANGES.filter(name => isChanged[name]), added, removed, promoted, demoted }
}

function rank(role: GroupRole): number {
  return GROUP_ROLES.indexOf(role)
}

/** Members by both of their addresses. */
class MemberSet {
  readonly #byAddress = new Map<string, GroupMember>()

  constructor(members: readonly GroupMember[]) {
    for (const member of members) {
      if (member.lid !== null) this.#byAddress.set(member.lid, member)
      if (member.phone !== null) this.#byAddress.set(member.phone, member)
    }
  }

  find({ lid, phone }: OwnAddresses): GroupMember | undefined {
    return (lid === null ? undefined : this.#byAddress.get(lid)) ?? this.#byAddress.get(phone ?? '')
  }
}
