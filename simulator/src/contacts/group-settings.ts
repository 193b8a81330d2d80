/** Changes of a group's subject, description, settings and timer. */
import { lidJid, pnJid } from '../addresses.ts'
import { bytes, child, type Node, node } from '../wire/nodes.ts'
import { type Answer, BAD_REQUEST, FORBIDDEN } from './asker.ts'
import { createMessageId } from './content.ts'
import { type GroupActor, type GroupQuery, ownGroup, share } from './group-sharing.ts'
import type { Group } from './group-types.ts'
import { addModeNode, approvalNode, isAdminOf } from './groups.ts'

const MAX_SUBJECT_LENGTH = 100
const MAX_DESCRIPTION_LENGTH = 2048
const MAX_EXPIRATION_S = 365 * 24 * 60 * 60

interface Change {
  group: Partial<Group>
  notice: Node
}

/** The change that a query asks for, or its refusal. */
type Read = (query: Node, before: Group, actor: GroupActor) => Change | Answer

/** Settings that admins change. */
export const setAnnouncement = setting((query): Change => {
  const announcement = query.tag === 'announcement'
  return { group: { announcement }, notice: node(query.tag, { v_id: createMessageId() }) }
}, 'admins')

export const setLocked = setting(
  (query): Change => ({ group: { locked: query.tag === 'locked' }, notice: node(query.tag) }),
  'admins',
)

export const setAddMode = setting(query => {
  const mode = bytes(query)?.toString()
  if (mode !== 'admin_add' && mode !== 'all_member_add') return BAD_REQUEST
  const everybodyAdds = mode === 'all_member_add'
  return { group: { everybodyAdds }, notice: addModeNode(everybodyAdds) }
}, 'admins')

export const setApproval = setting(query => {
  const state = child(query, 'group_join')?.attrs['state']
  if (state !== 'on' && state !== 'off') return BAD_REQUEST
  const approval = state === 'on'
  // Turning approval off discards the waiting requests.
  return { group: { approval, ...(!approval && { requests: [] }) }, notice: approvalNode(approval) }
}, 'admins')

/** Settings that every member changes, unless the group is locked. */
export const setSubject = setting((query, _, { number }) => {
  const subject = bytes(query)?.toString()
  if (!subject || [...subject].length > MAX_SUBJECT_LENGTH) return BAD_REQUEST
  const subjectAt = now()
  const attrs = { subject, s_t: subjectAt.toString(), s_o: lidJid(number), s_o_pn: pnJid(number) }
  return { group: { subject, subjectBy: number, subjectAt }, notice: node('subject', attrs) }
}, 'members')

export const setDescription = setting((query, before, { number }) => {
  const { id = createMessageId(), prev, delete: deletes } = query.attrs
  const text = bytes(query, 'body')?.toString()
  // A client names the description that it replaces. If that is not the present one, another change came first.
  if ((prev ?? '') !== (before.description?.id ?? '')) return { error: '409', text: 'conflict' }
  if (deletes === 'true' || !text) {
    return { group: { description: undefined }, notice: node('description', { id }, [node('delete')]) }
  }
  if ([...text].length > MAX_DESCRIPTION_LENGTH) return BAD_REQUEST
  const notice = node('description', { id }, [node('body', {}, Buffer.from(text))])
  return { group: { description: { id, text, by: number, at: now() } }, notice }
}, 'members')

export const setTimer = setting(query => {
  if (query.tag === 'not_ephemeral') return { group: { expiration: 0 }, notice: node('not_ephemeral') }
  const expiration = Number(query.attrs['expiration'])
  if (!Number.isInteger(expiration) || expiration <= 0 || expiration > MAX_EXPIRATION_S) return BAD_REQUEST
  return { group: { expiration }, notice: node('ephemeral', { expiration: expiration.toString() }) }
}, 'members')

function setting(read: Read, by: 'admins' | 'members'): GroupQuery {
  return async (actor, iq) => {
    const id = iq.attrs['to'] ?? ''
    const [query] = Array.isArray(iq.content) ? iq.content : []
    const before = ownGroup(actor, id)
    if (!query) return BAD_REQUEST
    if (!before || ((by === 'admins' || before.locked) && !isAdminOf(before, actor.number))) return FORBIDDEN
    const change = read(query, before, actor)
    if (!('group' in change)) return change
    await share(actor, id, { ...before, ...change.group }, () => change.notice)
    return []
  }
}

function now(): number {
  return Math.floor(Date.now() / 1000)
}
