/**
 * Groups. Every group ID exists. By default a group has two simulated members and those who joined later, and each
 * account has its own view of it. Groups created by clients are shared by all their members.
 */
import { digestDigits, lidJid, pnJid } from '../addresses.ts'
import { type Node, node } from '../wire/nodes.ts'
import { FOREIGN_GROUP } from './behaviour.ts'

export interface GroupMember {
  number: string
  role?: 'admin' | 'superadmin' | undefined
}

export interface Group {
  subject: string
  /** Seconds since the epoch. */
  createdAt: number
  creator: string
  members: readonly GroupMember[]
}

export interface GroupViewer {
  readonly phone: string
  /** By JID. Includes groups that it has left. */
  readonly createdGroups: ReadonlyMap<string, Group>
  /** By JID: members beyond the default ones. */
  readonly groupMembers: ReadonlyMap<string, readonly string[]>
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
  return created ? created.members.some(({ number }) => number === account.phone) : !isForeign(group)
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
  return { subject, createdAt: CREATION, creator, members: [...members, { number: account.phone }] }
}

/** The `<group>` node of a metadata query. */
export function groupNode(group: string, { subject, createdAt, creator, members }: Group): Node {
  const attrs = {
    id: group.split('@')[0],
    subject,
    s_t: createdAt.toString(),
    creation: createdAt.toString(),
    creator: lidJid(creator),
    creator_pn: pnJid(creator),
    addressing_mode: 'lid',
    size: members.length.toString(),
  }
  return node('group', attrs, members.map(participantNode))
}

/** Notifies a client of a change in a group. The client then gives newcomers its sender key, for example. */
export function groupNotification(group: string, actor: string, id: string, t: string, change: Node): Node {
  const attrs = { from: group, type: 'w:gp2', id, t, participant: lidJid(actor), participant_pn: pnJid(actor) }
  return node('notification', attrs, [change])
}

export function participantNode({ number, role }: GroupMember): Node {
  return node('participant', { jid: lidJid(number), phone_number: pnJid(number), type: role })
}
