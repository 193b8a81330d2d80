/** Changes of who is in a group. */
import { randomBytes, randomInt } from 'node:crypto'
import { lidJid, parseAddress, pnJid } from '../addresses.ts'
import { child, children, type Node, node } from '../wire/nodes.ts'
import { BAD_REQUEST, FORBIDDEN } from './asker.ts'
import { behaviourOf } from './behaviour.ts'
import { forAdmins, type GroupActor, type GroupQuery, ownGroup, share } from './group-sharing.ts'
import type { Group, GroupMember, JoinRequest, PersonalInvite } from './group-types.ts'
import { groupNode, isAdminOf, participantNode } from './groups.ts'

const CODE_BYTES = 12
const INVITE_LIVES_S = 3 * 24 * 3600

const GROUP_PREFIX = '120363'
const GROUP_DIGITS = 12

/** The actions on members, and the error for a member on whom the action is impossible. */
const IMPOSSIBLE = { add: '409', remove: '404', promote: '404', demote: '404' } as const

export type MemberAction = keyof typeof IMPOSSIBLE

export const createGroup: GroupQuery = async ({ network, number }, iq) => {
  const create = child(iq, 'create')
  const subject = create?.attrs['subject']
  if (!subject) return BAD_REQUEST
  // A community, or a group within a community. Creating an ordinary group instead would look like success.
  if (child(create, 'parent') ?? child(create, 'linked_parent')) {
    network.refusedQueries.report('create community', iq)
    return BAD_REQUEST
  }
  const invited = numbersIn(create).filter(one => one !== number && behaviourOf(one).onWhatsApp)
  const id = `${GROUP_PREFIX}${randomInt(10 ** GROUP_DIGITS)
    .toString()
    .padStart(GROUP_DIGITS, '0')}@g.us`
  const createdAt = Math.floor(Date.now() / 1000)
  const expiration = Number(child(create, 'ephemeral')?.attrs['expiration'] ?? 0)
  const group: Group = {
    subject,
    createdAt,
    creator: number,
    members: [{ number, role: 'superadmin' }, ...invited.map(one => ({ number: one }))],
    ...(expiration > 0 && { expiration }),
  }
  const notice = node('create', { type: 'new', key: create?.attrs['key'] }, [groupNode(id, group)])
  await share({ network, number }, id, group, () => notice)
  return [groupNode(id, group)]
}

export function changeMembers(action: MemberAction): GroupQuery {
  return async (actor, iq) => {
    const id = iq.attrs['to'] ?? ''
    const before = ownGroup(actor, id)
    if (!before) return FORBIDDEN
    const isAdmin = isAdminOf(before, actor.number)
    if (!isAdmin && !(action === 'add' && before.everybodyAdds)) return FORBIDDEN
    const requested = numbersIn(child(iq, action))
    const refuses = (number: string) =>
      action === 'add' && actor.network.findAccount(number)?.settings.privacy('groupadd') === 'none'
    const possible = requested.filter(number => isPossible(action, before, number) && !refuses(number))
    const waits = action === 'add' && before.approval === true && !isAdmin
    if (waits) await ask(actor, id, before, possible, { method: 'non_admin_add', requestor: actor.number })
    else if (possible.length > 0) await shareMembers(actor, id, before, action, possible)
    const invites = await invite(actor, id, requested.filter(refuses))
    const answers = requested.map(number => {
      const error = possible.includes(number) ? undefined : refuses(number) ? '403' : IMPOSSIBLE[action]
      const invited = invites.find(one => one.number === number)
      const code = invited && { code: invited.code, expiration: invited.expiration.toString() }
      const person = { jid: lidJid(number), phone_number: pnJid(number), error }
      return node('participant', person, code && [node('add_request', code)])
    })
    return [node(action, {}, answers)]
  }
}

export const leaveGroup: GroupQuery = async (actor, iq) => {
  const answers: Node[] = []
  for (const { attrs } of children(child(iq, 'leave'), 'group')) {
    const { id = '' } = attrs
    const before = ownGroup(actor, id)
    if (before) await shareMembers(actor, id, before, 'remove', [actor.number])
    answers.push(node('group', { id, error: before ? undefined : '404' }))
  }
  return [node('leave', {}, answers)]
}

/** Makes the change, and notifies the members of it. Added members are notified of the group instead. */
export function shareMembers(
  actor: Pick<GroupActor, 'network' | 'number'>,
  id: string,
  before: Group,
  action: MemberAction,
  numbers: readonly string[],
  reason?: string,
): Promise<void> {
  const requests = action === 'add' ? withoutRequests(before, numbers) : {}
  const changed = { ...before, members: membersAfter(action, before, numbers), ...requests }
  const people = numbers.map(number => participantNode({ number }))
  const notice = node(action, { reason }, people)
  const welcome = node('create', { reason }, [groupNode(id, changed)])
  const isNew = (number: string) => action === 'add' && numbers.includes(number)
  return share(actor, id, changed, number => (isNew(number) ? welcome : notice), numbers)
}

export function withoutRequests({ requests = [] }: Group, numbers: readonly string[]): Pick<Group, 'requests'> {
  return { requests: requests.filter(({ number }) => !numbers.includes(number)) }
}

/** Makes a personal invitation for each number. */
async function invite(actor: GroupActor, id: string, numbers: readonly string[]): Promise<PersonalInvite[]> {
  const group = ownGroup(actor, id)
  if (!group || numbers.length === 0) return []
  const expiration = Math.floor(Date.now() / 1000) + INVITE_LIVES_S
  const added = numbers.map(number => ({ number, code: randomBytes(CODE_BYTES).toString('base64url'), expiration }))
  const others = (group.personalInvites ?? []).filter(({ number }) => !numbers.includes(number))
  await share(actor, id, { ...group, personalInvites: [...others, ...added] }, () => null)
  return added
}

/** Adds requests to join, which wait for an admin. */
export async function ask(
  actor: Pick<GroupActor, 'network' | 'number'>,
  id: string,
  before: Group,
  numbers: readonly string[],
  { method, requestor }: Pick<JoinRequest, 'method' | 'requestor'>,
): Promise<void> {
  const at = Math.floor(Date.now() / 1000)
  const waiting = (before.requests ?? []).map(({ number }) => number)
  const added = numbers.filter(number => !waiting.includes(number)).map(number => ({ number, at, method, requestor }))
  if (added.length === 0) return
  const changed = { ...before, requests: [...(before.requests ?? []), ...added] }
  const people = added.map(({ number }) => node('requested_user', { jid: lidJid(number), phone_number: pnJid(number) }))
  const notice = node('created_membership_requests', { request_method: method }, people)
  await share(actor, id, changed, forAdmins(changed, notice))
}

function isPossible(action: MemberAction, { members }: Group, number: string): boolean {
  const isIn = members.some(member => member.number === number)
  return action === 'add' ? !isIn && behaviourOf(number).onWhatsApp : isIn
}

function membersAfter(action: MemberAction, { members }: Group, numbers: readonly string[]): GroupMember[] {
  const others = members.filter(({ number }) => !numbers.includes(number))
  if (action === 'add') return [...others, ...numbers.map(number => ({ number }))]
  if (action === 'remove') return others
  const role = action === 'promote' ? ('admin' as const) : undefined
  return members.map(member => (numbers.includes(member.number) ? { number: member.number, role } : member))
}

export function numbersIn(parent: Node | undefined): string[] {
  const numbers = children(parent, 'participant').flatMap(({ attrs }) => parseAddress(attrs['jid'])?.number ?? [])
  return [...new Set(numbers)]
}
