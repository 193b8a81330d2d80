import type { Account } from './account.ts'
import { digestDigits, lidJid, pnJid } from './addresses.ts'
import { FOREIGN_GROUP } from './behaviour.ts'
import { type Node, node } from './nodes.ts'

const SIMULATED_MEMBERS = 2
/** Members' numbers: this, then digits made from the group. */
const MEMBER_PREFIX = '8889'
const MEMBER_DIGITS = 9
/** Every group was made at this moment, in seconds since the epoch. */
const CREATION = '1700000000'

export function isMember(group: string): boolean {
  return group !== FOREIGN_GROUP
}

/** The members of a group beside the account itself: two that every group has, and those that joined later. */
export function otherMembers(account: Account, group: string): string[] {
  const members = new Set<string>()
  for (let n = 1; n <= SIMULATED_MEMBERS; n++) members.add(MEMBER_PREFIX + digestDigits(`${group} ${n}`, MEMBER_DIGITS))
  for (const joined of account.groupMembers.get(group) ?? []) members.add(joined)
  members.delete(account.phone)
  return [...members]
}

/** The `<group>` node of a metadata query. */
export function groupNode(account: Account, group: string): Node {
  const others = otherMembers(account, group)
  const creator = others[0]!
  const [id] = group.split('@')
  const attrs = {
    id,
    subject: `Group ${id!.slice(-4)}`,
    s_t: CREATION,
    creation: CREATION,
    creator: lidJid(creator),
    creator_pn: pnJid(creator),
    addressing_mode: 'lid',
    size: (others.length + 1).toString(),
  }
  const participants = others.map(member => participantNode(member, member === creator ? 'superadmin' : undefined))
  return node('group', attrs, [...participants, participantNode(account.phone)])
}

/** What tells a client that a member has joined, so that it gives the newcomer its sender key. */
export function joinedNotification(account: Account, group: string, member: string, id: string, t: string): Node {
  const admin = otherMembers(account, group)[0]!
  const attrs = { from: group, type: 'w:gp2', id, t, participant: lidJid(admin), participant_pn: pnJid(admin) }
  return node('notification', attrs, [node('add', {}, [participantNode(member)])])
}

function participantNode(member: string, type?: string): Node {
  return node('participant', { jid: lidJid(member), phone_number: pnJid(member), type })
}
