/** Invitation links, and requests to join a group whose admins approve new members. */
import { randomBytes } from 'node:crypto'
import { lidJid, pnJid } from '../addresses.ts'
import { child, children, type Node, node } from '../wire/nodes.ts'
import { type Answer, BAD_REQUEST, FORBIDDEN, NOT_ACCEPTABLE } from './asker.ts'
import { ask, numbersIn, shareMembers, withoutRequests } from './group-members.ts'
import {
  findGroup,
  findInvited,
  forAdmins,
  type GroupActor,
  type GroupQuery,
  ownGroup,
  share,
} from './group-sharing.ts'
import type { Group } from './group-types.ts'
import { groupNode, isAdminOf } from './groups.ts'

const NOT_AUTHORIZED = { error: '401', text: 'not-authorized' } as const satisfies Answer
const GONE = { error: '410', text: 'gone' } as const satisfies Answer
const CONFLICT = { error: '409', text: 'conflict' } as const satisfies Answer
/** A code has 22 characters. */
const CODE_BYTES = 16

export const getInvite: GroupQuery = async (actor, iq) => {
  const { code } = child(iq, 'invite')?.attrs ?? {}
  if (code !== undefined) return describeInvited(actor, code)
  const group = adminsGroup(actor, iq)
  if ('error' in group) return group
  const invite = group.invite ?? newCode()
  if (group.invite === undefined) await share(actor, iq.attrs['to']!, { ...group, invite }, () => null)
  return [node('invite', { code: invite })]
}

/** Accepts an invitation, or revokes the group's link and makes another one. */
export const setInvite: GroupQuery = async (actor, iq) => {
  const { code } = child(iq, 'invite')?.attrs ?? {}
  if (code !== undefined) return accept(actor, code)
  const group = adminsGroup(actor, iq)
  if ('error' in group) return group
  const invite = newCode()
  const revokedInvites = [...(group.revokedInvites ?? []), ...(group.invite === undefined ? [] : [group.invite])]
  const changed = { ...group, invite, revokedInvites }
  await share(actor, iq.attrs['to']!, changed, () => node('invite', { code: invite }))
  return [node('invite', { code: invite })]
}

export const listRequests: GroupQuery = (actor, iq) => {
  const group = adminsGroup(actor, iq)
  if ('error' in group) return group.error === '401' ? FORBIDDEN : group
  const requests = (group.requests ?? []).map(({ number, at, method, requestor }) => {
    const added = requestor === undefined ? {} : { requestor: lidJid(requestor), requestor_pn: pnJid(requestor) }
    const person = { jid: lidJid(number), phone_number: pnJid(number) }
    return node('membership_approval_request', {
      ...person,
      request_method: method,
      request_time: at.toString(),
      ...added,
    })
  })
  return [node('membership_approval_requests', {}, requests)]
}

export const decideRequests: GroupQuery = async (actor, iq) => {
  const id = iq.attrs['to'] ?? ''
  const [action] = children(child(iq, 'membership_requests_action'))
  const group = adminsGroup(actor, iq)
  if ('error' in group) return group.error === '401' ? FORBIDDEN : group
  if (action?.tag !== 'approve' && action?.tag !== 'reject') return BAD_REQUEST
  const asked = numbersIn(action)
  const waiting = (group.requests ?? []).map(({ number }) => number).filter(number => asked.includes(number))
  if (waiting.length > 0 && action.tag === 'approve') await shareMembers(actor, id, group, 'add', waiting)
  else if (waiting.length > 0) await discard(actor, id, group, waiting)
  const answers = asked.map(number =>
    node('participant', { jid: lidJid(number), error: waiting.includes(number) ? undefined : '404' }),
  )
  return [node('membership_requests_action', {}, [node(action.tag, {}, answers)])]
}

async function accept(actor: GroupActor, code: string): Promise<Answer> {
  const { network, number } = actor
  const invited = findInvited(network, code)
  if (!invited) return NOT_ACCEPTABLE
  if (invited.isRevoked) return GONE
  const { id, group } = invited
  if (group.members.some(member => member.number === number)) return CONFLICT
  if (group.approval) {
    await ask(actor, id, group, [number], { method: 'invite_link' })
    return [node('membership_approval_request', { jid: id })]
  }
  await shareMembers(actor, id, group, 'add', [number], 'invite')
  return [node('group', { jid: id })]
}

/** Joins with a personal invitation. */
export const acceptPersonal: GroupQuery = async (actor, iq) => {
  const { network, number } = actor
  const id = iq.attrs['to'] ?? ''
  const { code } = child(iq, 'accept')?.attrs ?? {}
  const group = findGroup(network, id)
  const invite = group?.personalInvites?.find(one => one.code === code && one.number === number)
  if (!group || !invite) return NOT_ACCEPTABLE
  if (invite.expiration * 1000 < Date.now()) return GONE
  if (group.members.some(member => member.number === number)) return CONFLICT
  const personalInvites = group.personalInvites?.filter(one => one !== invite) ?? []
  await shareMembers(actor, id, { ...group, personalInvites }, 'add', [number], 'invite')
  return []
}

/** Withdraws personal invitations. */
export const revokePersonal: GroupQuery = async (actor, iq) => {
  const group = adminsGroup(actor, iq)
  if ('error' in group) return group
  const numbers = numbersIn(child(iq, 'revoke'))
  const personalInvites = (group.personalInvites ?? []).filter(({ number }) => !numbers.includes(number))
  await share(actor, iq.attrs['to'] ?? '', { ...group, personalInvites }, () => null)
  return [
    node(
      'revoke',
      {},
      numbers.map(number => node('participant', { jid: lidJid(number) })),
    ),
  ]
}

function describeInvited({ network }: GroupActor, code: string): Answer {
  const invited = findInvited(network, code)
  if (!invited) return NOT_ACCEPTABLE
  return invited.isRevoked ? GONE : [groupNode(invited.id, invited.group)]
}

async function discard(actor: GroupActor, id: string, group: Group, numbers: readonly string[]): Promise<void> {
  const changed = { ...group, ...withoutRequests(group, numbers) }
  const people = numbers.map(number => node('participant', { jid: lidJid(number), phone_number: pnJid(number) }))
  await share(actor, id, changed, forAdmins(changed, node('revoked_membership_requests', {}, people)))
}

/** The group that the query is about, if the actor is an admin of it. */
function adminsGroup(actor: GroupActor, iq: Node): Group | { error: string; text: string } {
  const group = ownGroup(actor, iq.attrs['to'] ?? '')
  if (!group) return FORBIDDEN
  return isAdminOf(group, actor.number) ? group : NOT_AUTHORIZED
}

function newCode(): string {
  return randomBytes(CODE_BYTES).toString('base64url')
}
