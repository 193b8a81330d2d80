/** The messages of a contact, apart from plain texts and files. */
import type { proto } from 'baileys/WAProto/index.js'
import type { Account } from '../account.ts'
import { isGroup, isNumber, STATUS } from '../addresses.ts'
import { problemOf } from '../media/contact-files.ts'
import type { Network } from '../network.ts'
import { type ContactMessage, type MessageKinds, SimulatorError } from '../types.ts'
import { hasMeaning } from './behaviour.ts'
import { readObject } from './content.ts'
import {
  DELETE_WITHIN_MS,
  deletionMessage,
  EDIT_WITHIN_MS,
  editMessage,
  keyOf,
  optionsOf,
  pollMessage,
  reactionMessage,
  type Target,
  voteMessage,
} from './conversation.ts'
import { groupOf, isAdminOf, isMember, mayWrite } from './groups.ts'

/** Higher than the limits of WhatsApp's own apps. A stanza may have 16 MiB. */
const MAX_TEXT_LENGTH = 10_000_000
const KINDS = ['text', 'media', 'reaction', 'edit', 'delete', 'poll', 'vote', 'content'] as const

/** @throws SimulatorError if a contact cannot write this */
export function checkMessage(network: Network, message: ContactMessage): void {
  const { from, to, text, media, quote, group, name, undecryptable, unavailable } = message
  const problem =
    (!isNumber(from) && '`from` must be a phone number, digits only') ||
    (!isNumber(to) && '`to` must be a phone number, digits only') ||
    problemOfKind(message) ||
    (text !== undefined &&
      (typeof text !== 'string' || text === '' || text.length > MAX_TEXT_LENGTH) &&
      '`text` must be 1 to 10,000,000 characters') ||
    (media !== undefined && problemOf(media)) ||
    (quote !== undefined && typeof quote !== 'string' && '`quote` must be the ID of a message') ||
    (group !== undefined && !isGroup(group) && group !== STATUS && '`group` must be the JID of a group') ||
    (name !== undefined && typeof name !== 'string' && '`name` must be a string') ||
    (undecryptable !== undefined && typeof undecryptable !== 'boolean' && '`undecryptable` must be true or false') ||
    (unavailable !== undefined && typeof unavailable !== 'boolean' && '`unavailable` must be true or false') ||
    (!hasMeaning(from) && network.findAccount(from) && '`from` is an account: write through its client')
  if (problem) throw new SimulatorError('invalid_argument', problem)
  if (!group || group === STATUS) return
  const account = network.getAccount(to)
  if (!isMember(account, group)) throw new SimulatorError('not_a_member', `the account is not in ${group}`)
  if (!mayWrite(account, group, from)) throw new SimulatorError('not_a_member', `only admins write in ${group}`)
}

/** The problem with the kind of a message, and with its fields. Null if there is none. */
export function problemOfKind(given: MessageKinds): string | null {
  const kinds = KINDS.filter(kind => given[kind] !== undefined)
  if (kinds.length !== 1) return `exactly one of ${KINDS.map(kind => `\`${kind}\``).join(', ')} is required`
  const { reaction, edit, poll, vote, content } = given
  if (reaction && !areTexts(reaction.to, reaction.emoji)) return '`reaction` needs the texts `to` and `emoji`'
  if (edit && !(areTexts(edit.id, edit.text) && edit.text)) return '`edit` needs the texts `id` and `text`'
  if (given.delete !== undefined && !areTexts(given.delete)) return '`delete` must be the ID of a message'
  if (poll && !(areTexts(poll.name) && isListOfTexts(poll.options) && poll.options.length > 0))
    return '`poll` needs the text `name` and the list `options`'
  if (vote && !(areTexts(vote.poll) && isListOfTexts(vote.options)))
    return '`vote` needs the ID `poll` and the list `options`'
  if (content !== undefined && (typeof content !== 'object' || content === null)) return '`content` must be an object'
  return null
}

/**
 * The content of the message. Null for a text or a file.
 * @param reader the number that it is written to @throws SimulatorError `invalid_argument` if it refers to an
 * unsuitable message
 */
export function contactContent(
  account: Account,
  given: MessageKinds & Pick<ContactMessage, 'from' | 'group'>,
  reader = account.phone,
): proto.IMessage | null {
  const { from, group, reaction, edit, poll, vote } = given
  const key = (target: Target) => keyOf(target, from, reader)
  if (reaction) return reactionMessage(key(targetIn(account, reaction.to)), reaction.emoji)
  if (edit) return editMessage(key(editable(account, edit.id, from)), { conversation: edit.text })
  if (given.delete !== undefined) return deletionMessage(key(deletable(account, given.delete, from, group)))
  if (poll) return pollMessage(poll.name, poll.options, poll.selectable ?? 1)
  if (vote) {
    const target = targetIn(account, vote.poll)
    const content = account.inboxes.contentOf(vote.poll)
    const offered = content ? optionsOf(content) : []
    if (!content || !vote.options.every(option => offered.includes(option)))
      throw new SimulatorError('invalid_argument', `${vote.poll} is not a poll with these options`)
    return voteMessage(key(target), target, from, content, vote.options)
  }
  return given.content === undefined ? null : readObject(given.content)
}

function targetIn(account: Account, id: string): Target & { sentAt: number } {
  const message = account.inboxes.find(id)
  if (!message) throw new SimulatorError('invalid_argument', `no phone has the message ${id}`)
  return { id, author: message.from, group: message.group, sentAt: message.receivedAt }
}

function editable(account: Account, id: string, from: string): Target {
  const target = targetIn(account, id)
  if (target.author !== from) throw new SimulatorError('invalid_argument', `${from} did not write the message ${id}`)
  if (Date.now() - target.sentAt > EDIT_WITHIN_MS)
    throw new SimulatorError('invalid_argument', `the message ${id} is more than 15 minutes old: it cannot be edited`)
  return target
}

/** @param group in which it is deleted */
function deletable(account: Account, id: string, from: string, group: string | undefined): Target {
  const target = targetIn(account, id)
  const isAdmin = group !== undefined && target.group === group && isAdminOf(groupOf(account, group), from)
  if (target.author !== from && !isAdmin)
    throw new SimulatorError('invalid_argument', `${from} neither wrote the message ${id} nor is an admin of its group`)
  if (Date.now() - target.sentAt > DELETE_WITHIN_MS)
    throw new SimulatorError('invalid_argument', `the message ${id} is more than 60 hours old: it cannot be deleted`)
  return target
}

function areTexts(...values: unknown[]): boolean {
  return values.every(value => typeof value === 'string')
}

function isListOfTexts(value: unknown): boolean {
  return Array.isArray(value) && areTexts(...value)
}
