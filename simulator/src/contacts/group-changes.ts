/**
 * Changes to groups that clients have created. All members' accounts share every change and their clients are notified.
 */
import { randomInt } from 'node:crypto'
import { lidJid, parseAddress } from '../addresses.ts'
import { release } from '../server/delivery.ts'
import { bytes, child, children, type Node, node, seconds } from '../wire/nodes.ts'
import { type Answer, type Asker, BAD_REQUEST, FORBIDDEN } from './asker.ts'
import { behaviourOf } from './behaviour.ts'
import { createMessageId } from './content.ts'
import {
  type Group,
  type GroupMember,
  groupNode,
  groupNotification,
  groupOf,
  isMember,
  participantNode,
} from './groups.ts'

const GROUP_PREFIX = '120363'
const GROUP_DIGITS = 12

/** The actions on members, and the error for a member on whom the action is impossible. */
const IMPOSSIBLE = { add: '409', remove: '404', promote: '404', demote: '404' } as const

export type MemberAction = keyof typeof IMPOSSIBLE

export function createGroup(asker: Asker, iq: Node): Promise<Answer> | Answer {
  const { account } = asker
  const create = child(iq, 'create')
  const subject = create?.attrs['subject']
  if (!subject) return BAD_REQUEST
  const invited = numbersIn(create).filter(number => number !== account.phone && behaviourOf(number).onWhatsApp)
  const id = `${GROUP_PREFIX}${randomInt(10 ** GROUP_DIGITS)
    .toString()
    .padStart(GROUP_DIGITS, '0')}@g.us`
  const changed: Group = {
    subject,
    createdAt: Math.floor(Date.now() / 1000),
    creator: account.phone,
    members: [{ number: account.phone, role: 'superadmin' }, ...invited.map(number => ({ number }))],
  }
  const notice = node('create', { type: 'new', key: create?.attrs['key'] }, [groupNode(id, changed)])
  return asker.network.changeGroup(async () => {
    await share(asker, id, changed, () => notice)
    return [groupNode(id, changed)]
  })
}

export function changeMembers(action: MemberAction): (asker: Asker, iq: Node) => Promise<Answer> {
  return (asker, iq) =>
    asker.network.changeGroup(async () => {
      const group = iq.attrs['to'] ?? ''
      const before = groupOf(asker.account, group)
      if (!isAdmin(asker, group)) return FORBIDDEN
      const requested = numbersIn(child(iq, action))
      const possible = requested.filter(number => isPossible(action, before, number))
      const changed = { ...before, members: membersAfter(action, before, possible) }
      if (possible.length > 0) await shareMembers(asker, group, changed, action, possible)
      const answers = requested.map(number => {
        const error = possible.includes(number) ? undefined : IMPOSSIBLE[action]
        return node('participant', { jid: lidJid(number), error })
      })
      return [node(action, {}, answers)]
    })
}

export function leaveGroup(asker: Asker, iq: Node): Promise<Answer> {
  const { account, network } = asker
  return network.changeGroup(async () => {
    for (const { attrs } of children(child(iq, 'leave'), 'group')) {
      const group = attrs['id'] ?? ''
      const before = account.createdGroups.get(group)
      if (!before || !isMember(account, group)) continue
      const changed = { ...before, members: membersAfter('remove', before, [account.phone]) }
      await shareMembers(asker, group, changed, 'remove', [account.phone])
    }
    return []
  })
}

export function renameGroup(asker: Asker, iq: Node): Promise<Answer> {
  return asker.network.changeGroup(async () => {
    const group = iq.attrs['to'] ?? ''
    const subject = bytes(iq, 'subject')?.toString()
    if (!subject) return BAD_REQUEST
    if (!isAdmin(asker, group)) return FORBIDDEN
    const changed = { ...groupOf(asker.account, group), subject }
    await share(asker, group, changed, () => node('subject', { subject, s_t: seconds(Date.now()) }))
    return []
  })
}

function isAdmin({ account }: Asker, group: string): boolean {
  if (!account.createdGroups.has(group)) return false
  return groupOf(account, group).members.some(({ number, role }) => number === account.phone && role !== undefined)
}

function isPossible(action: MemberAction, { members }: Group, number: string): boolean {
  const isIn = members.some(member => member.number === number)
  return action === 'add' ? !isIn && behaviourOf(number).onWhatsApp : isIn
}

function membersAfter(action: MemberAction, { members }: Group, numbers: readonly string[]): GroupMember[] {
  const others = members.filter(({ number }) => !numbers.includes(number))
  if (action === 'add') return [...members, ...numbers.map(number => ({ number }))]
  if (action === 'remove') return others
  const role = action === 'promote' ? ('admin' as const) : undefined
  return members.map(member => (numbers.includes(member.number) ? { number: member.number, role } : member))
}

/** Notifies the members of the action. Added members are notified of the group instead. */
function shareMembers(asker: Asker, group: string, changed: Group, action: MemberAction, numbers: readonly string[]) {
  const notice = node(
    action,
    {},
    numbers.map(number => participantNode({ number })),
  )
  const welcome = node('create', { type: 'new' }, [groupNode(group, changed)])
  const isNew = (number: string) => action === 'add' && numbers.includes(number)
  return share(asker, group, changed, number => (isNew(number) ? welcome : notice), numbers)
}

/** Stores the changed group in the account of every member and of the `others`. Resolves once all have it. */
async function share(
  { network, account: actor }: Asker,
  group: string,
  changed: Group,
  noticeFor: (number: string) => Node,
  others: readonly string[] = [],
): Promise<void> {
  for (const number of new Set([...changed.members.map(member => member.number), ...others])) {
    const account = network.findAccount(number)
    await account?.applyDurably(() => {
      account.setCreatedGroup(group, changed)
      if (!account.companion) return []
      const now = Date.now()
      const notification = groupNotification(group, actor.phone, createMessageId(), seconds(now), noticeFor(number))
      return [release(network, account, account.queue.add(notification, now))]
    })
  }
}

function numbersIn(parent: Node | undefined): string[] {
  const numbers = children(parent, 'participant').flatMap(({ attrs }) => parseAddress(attrs['jid'])?.number ?? [])
  return [...new Set(numbers)]
}
