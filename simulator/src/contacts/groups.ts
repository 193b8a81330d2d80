/**
 * Groups. Every group ID exists. By default a group has two simulated members and those who joined later, and each
 * account has its own view of it. Groups created by clients are shared by all their members.
 */
import { digestDigits, lidJid, pnJid } from '../addresses.ts'
import { type Node, node } from '../wire/nodes.ts'
import { FOREIGN_GROUP } from './behaviour.ts'
import type { Group, GroupMember } from './group-types.ts'

export interface GroupViewer {
  readonly phone: string
  /** By JID. Includes groups that it has left. */
  readonly createdGroups: ReadonlyMap<string, Group>
  /** By JID: members beyond the default ones. */
  readonly groupMembers: ReadonlyMap<string, readonly string[]>
  /** Groups that somebody in this network created. Only people who were added are members. */
  readonly networkGroups: ReadonlySet<string>
}

const SIMULATED_MEMBERS = 2
/** Members' numbers: this prefix, then digits derived from the group's JID. */
const MEMBER_PREFIX = '8889'
const MEMBER_DIGITS = 9
/** When every default group was created, in seconds since the epoch. */
const CREATION = 1_700_000_000

/** True for the group that no account is a member of. */
export function isForeign(group: string): boolean {
  return group === FOREIGN_GROUP
}

export function isMember(account: GroupViewer, group: string): boolean {
  const created = account.createdGroups.get(group)
  if (created) return created.members.some(({ number }) => number === account.phone)
  return !isForeign(group) && !account.networkGroups.has(group)
}

/** The members of a group besides the account itself. */
export function otherMembers(account: GroupViewer, group: string): string[] {
  return groupOf(account, group).members.flatMap(({ number }) => (number === account.phone ? [] : [number]))
}

/** The group as the account sees it. */
export function groupOf(account: GroupViewer, group: string): Group {
  const created = account.createdGroups.get(group)
  if (created) return created
  const others = new Set<string>()
  for (let n = 1; n <= SIMULATED_MEMBERS; n++) others.add(MEMBER_PREFIX + digestDigits(`${group} ${n}`, MEMBER_DIGITS))
  for (const joined of account.groupMembers.get(group) ?? []) others.add(joined)
  others.delete(account.phone)
  const [creator = ''] = others
  const members = [...others].map(number => (number === creator ? { number, role: 'superadmin' as const } : { number }))
  const subject = `Group ${group.split('@')[0]!.slice(-4)}`
  return { isDefault: true, subject, createdAt: CREATION, creator, members: [...members, { number: account.phone }] }
}

export function isAdminOf({ members }: Group, phone: string): boolean {
  return members.some(({ number, role }) => number === phone && role !== undefined)
}

/** True if this member may write in the group. */
export function mayWrite(account: GroupViewer, group: string, number: string): boolean {
  const known = groupOf(account, group)
  return !known.announcement || isAdminOf(known, number)
}

/** The `<group>` node of a metadata query. */
export function groupNode(group: string, known: Group): Node {
  const { subject, createdAt, creator, members, subjectBy = creator, subjectAt = createdAt } = known
  const attrs = {
    id: group.split('@')[0],
    subject,
    s_t: subjectAt.toString(),
    s_o: lidJid(subjectBy),
    s_o_pn: pnJid(subjectBy),
    creation: createdAt.toString(),
    creator: lidJid(creator),
    creator_pn: pnJid(creator),
    addressing_mode: 'lid',
    size: members.length.toString(),
  }
  return node('group', attrs, [...members.map(participantNode), ...settingNodes(known)])
}

function settingNodes({ description, announcement, locked, everybodyAdds, approval, expiration }: Group): Node[] {
  return [
    ...(description ? [descriptionNode(description)] : []),
    ...(announcement ? [node('announcement')] : []),
    ...(locked ? [node('locked')] : []),
    addModeNode(everybodyAdds),
    ...(approval ? [approvalNode(true)] : []),
    ...(expiration ? [node('ephemeral', { expiration: expiration.toString() })] : []),
  ]
}

function descriptionNode({ id, text, by, at }: NonNullable<Group['description']>): Node {
  const attrs = { id, participant: lidJid(by), participant_pn: pnJid(by), t: at.toString() }
  return node('description', attrs, [node('body', {}, Buffer.from(text))])
}

export function addModeNode(everybodyAdds = false): Node {
  return node('member_add_mode', {}, Buffer.from(everybodyAdds ? 'all_member_add' : 'admin_add'))
}

export function approvalNode(isOn: boolean): Node {
  return node('membership_approval_mode', {}, [node('group_join', { state: isOn ? 'on' : 'off' })])
}

/** Notifies a client of a change in a group. The client then gives newcomers its sender key, for example. */
export function groupNotification(group: string, actor: string, id: string, t: string, change: Node): Node {
  const party = { participant: lidJid(actor), participant_pn: pnJid(actor), addressing_mode: 'lid' }
  return node('notification', { from: group, type: 'w:gp2', id, t, ...party }, [change])
}

export function participantNode({ number, role }: GroupMember): Node {
  return node('participant', { jid: lidJid(number), phone_number: pnJid(number), type: role })
}
