/** Lets people change groups, with the same effects as the queries of clients. */
import type { Account } from '../account.ts'
import { isGroup, isNumber, lidJid } from '../addresses.ts'
import type { Network } from '../network.ts'
import { SimulatorError } from '../types.ts'
import { children, type Node, node } from '../wire/nodes.ts'
import { createMessageId } from './content.ts'
import { groupChanges } from './group-changes.ts'
import { getInvite } from './group-invitations.ts'
import { shareMembers } from './group-members.ts'
import type { GroupActor, GroupQuery } from './group-sharing.ts'
import type { Group, GroupChange, GroupState } from './group-types.ts'
import { groupOf, isForeign, isMember } from './groups.ts'

const MEMBER_LISTS = ['add', 'remove', 'promote', 'demote'] as const
const DECISIONS = ['approve', 'reject'] as const
const TEXTS = ['by', 'account', 'subject', 'description', 'join'] as const
const FLAGS = ['announcement', 'locked', 'everybodyAdds', 'approval'] as const

/** @throws SimulatorError if the group, or a part of the change, is not valid, or WhatsApp refuses it */
export async function changeGroup(network: Network, group: string, change: GroupChange): Promise<GroupState> {
  check(group, change)
  const account = viewer(network, group, change.account)
  const known = groupOf(account, group)
  const number = change.by ?? known.members.find(({ role }) => role !== undefined)?.number ?? known.creator
  for (const query of queriesOf(group, change, known)) {
    await network.changeGroup(() => execute({ network, account, number }, query))
  }
  return describeGroup(network, group, account.phone)
}

/** A contact, or the owner of an account, creates a group with these members. One of them must have an account. */
export async function createGroupAs(network: Network, by: string, subject: string, members: readonly string[]) {
  if (!isNumber(by) || typeof subject !== 'string' || !isListOfNumbers(members))
    throw invalid('`by`, `subject`, `members`')
  const account = [by, ...members].map(number => network.findAccount(number)).find(one => one !== null)
  if (!account) throw new SimulatorError('unknown_account', 'none of the members has an account')
  const create = node('create', { subject, key: createMessageId() }, members.map(personNode))
  const [created] = await network.changeGroup(() =>
    execute({ network, account, number: by }, { query: groupChanges['create']!, iq: node('iq', {}, [create]) }),
  )
  return { group: `${created!.attrs['id']}@g.us` }
}

/** @throws SimulatorError */
export function describeGroup(network: Network, group: string, phone?: string): GroupState {
  if (!isGroup(group)) throw invalid('the JID of a group')
  const known = groupOf(viewer(network, group, phone), group)
  const { description, picture, isDefault, revokedInvites, personalInvites, subjectBy, subjectAt, ...state } = known
  return { group, ...state, ...(description && { description: description.text }) }
}

/** A contact becomes a member of a group that all its members' accounts share. Does nothing for other groups. */
export function joinShared(network: Network, account: Account, group: string, number: string): Promise<void> {
  return network.changeGroup(async () => {
    const known = account.createdGroups.get(group)
    if (!known || !isMember(account, group) || known.members.some(member => member.number === number)) return
    await shareMembers({ network, number }, group, known, 'add', [number], 'invite')
  })
}

interface Step {
  query: GroupQuery
  iq: Node
}

async function execute(actor: GroupActor, { query, iq }: Step): Promise<Node[]> {
  const answer = await query(actor, iq)
  if (!Array.isArray(answer)) throw new SimulatorError('invalid_argument', `refused: ${answer.error} ${answer.text}`)
  const people = answer.flatMap(one => [one, ...children(one)]).flatMap(one => children(one))
  const refused = people.find(({ attrs }) => attrs['error'] !== undefined)
  if (refused) throw new SimulatorError('invalid_argument', `refused for one of them: ${refused.attrs['error']}`)
  return answer
}

function queriesOf(group: string, change: GroupChange, { description }: Group): Step[] {
  const nodes: Node[] = []
  const flag = (value: boolean | undefined, on: string, off: string) => {
    if (value !== undefined) nodes.push(node(value ? on : off))
  }
  for (const action of MEMBER_LISTS) if (change[action]) nodes.push(node(action, {}, change[action].map(personNode)))
  for (const action of DECISIONS) {
    const decision = change[action] && node(action, {}, change[action].map(personNode))
    if (decision) nodes.push(node('membership_requests_action', {}, [decision]))
  }
  if (change.subject !== undefined) nodes.push(node('subject', {}, Buffer.from(change.subject)))
  if (change.description !== undefined) nodes.push(descriptionQuery(change.description, description?.id))
  flag(change.announcement, 'announcement', 'not_announcement')
  flag(change.locked, 'locked', 'unlocked')
  if (change.everybodyAdds !== undefined)
    nodes.push(node('member_add_mode', {}, Buffer.from(change.everybodyAdds ? 'all_member_add' : 'admin_add')))
  if (change.approval !== undefined) {
    const state = change.approval ? 'on' : 'off'
    nodes.push(node('membership_approval_mode', {}, [node('group_join', { state })]))
  }
  if (change.expiration !== undefined) {
    const expiration = change.expiration.toString()
    nodes.push(change.expiration === 0 ? node('not_ephemeral') : node('ephemeral', { expiration }))
  }
  if (change.join !== undefined) nodes.push(node('invite', { code: change.join }))
  if (change.invite === 'revoke') nodes.push(node('invite'))
  const steps = nodes.map(one => ({ query: groupChanges[one.tag]!, iq: node('iq', { to: group }, [one]) }))
  if (change.invite === 'get') steps.push({ query: getInvite, iq: node('iq', { to: group }, [node('invite')]) })
  const leave = node('leave', {}, [node('group', { id: group })])
  if (change.leave) steps.push({ query: groupChanges['leave']!, iq: node('iq', {}, [leave]) })
  return steps
}

function descriptionQuery(text: string, prev: string | undefined): Node {
  const attrs = { id: createMessageId(), prev, delete: text === '' ? 'true' : undefined }
  return node('description', attrs, text === '' ? undefined : [node('body', {}, Buffer.from(text))])
}

function personNode(number: string): Node {
  return node('participant', { jid: lidJid(number) })
}

/** The account whose view of the group is used: the named one, else one that is in the group, else the only account. */
function viewer(network: Network, group: string, phone: string | undefined): Account {
  if (phone !== undefined) return network.getAccount(phone)
  const accounts = network.accounts()
  const account =
    accounts.find(one => one.createdGroups.has(group) && isMember(one, group)) ??
    accounts.find(one => one.groupMembers.has(group)) ??
    (accounts.length === 1 ? accounts[0] : undefined)
  if (!account) throw new SimulatorError('invalid_argument', '`account` must be the number of an account in the group')
  return account
}

function check(group: string, change: GroupChange): void {
  if (!isGroup(group) || isForeign(group)) throw invalid('the JID of a group')
  for (const name of TEXTS)
    if (!['undefined', 'string'].includes(typeof change[name])) throw invalid(`a text \`${name}\``)
  for (const name of FLAGS)
    if (!['undefined', 'boolean'].includes(typeof change[name])) throw invalid(`true or false as \`${name}\``)
  for (const name of [...MEMBER_LISTS, ...DECISIONS]) {
    if (change[name] !== undefined && !isListOfNumbers(change[name])) throw invalid(`a list of numbers as \`${name}\``)
  }
  if (change.by !== undefined && !isNumber(change.by)) throw invalid('a number as `by`')
  if (change.expiration !== undefined && !Number.isSafeInteger(change.expiration))
    throw invalid('seconds as `expiration`')
  if (!['get', 'revoke', undefined].includes(change.invite)) throw invalid('`get` or `revoke` as `invite`')
}

function isListOfNumbers(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0 && value.every(isNumber)
}

function invalid(what: string): SimulatorError {
  return new SimulatorError('invalid_argument', `needs ${what}`)
}
