import { type Selectable, sql } from 'kysely'
import { type Command, EDIT_WINDOW_MS, type MessageExtras, type MessageReferenced } from '../../domain/conversation.ts'
import type { InstanceId, MessageId } from '../../domain/ids.ts'
import type { Addressing } from '../../domain/incoming-message.ts'
import type { MessageState } from '../../domain/message.ts'
import { otherSpelling, parseRecipient } from '../../domain/recipients/recipient.ts'
import type { Transaction } from '../engine/backend.ts'
import { type IncomingMessagesTable, IS_PREPARED, type MessagesTable } from '../engine/schema/messages.ts'
import type { Statements } from '../engine/statement.ts'
import { hasOldNodes } from '../leases/old-nodes.ts'
import { chatOf } from '../numbers/contacts.ts'
import type { AcceptOutcome, NewMessage } from './messages.ts'

/** The extras of a message with its references resolved. */
export interface ResolvedExtras {
  extras: MessageExtras | null
  /** A command goes to the chat of its target. */
  to: string
  /** The target of a deletion, if it was never written to a socket. */
  cancelled: MessageId | null
  /** Set for a command on a scheduled message: it is due at the same time. */
  notBefore: number | null
}

type Refusal = Extract<AcceptOutcome, { kind: 'refused' | 'old_nodes' }>

/** A message that another message refers to. */
interface Referenced extends MessageReferenced {
  /** The addresses of its chat: the one in its row, then the one that WhatsApp uses. */
  chats: readonly string[]
  sent: {
    state: MessageState
    sentAt: number | null
    isWritten: boolean
    isText: boolean
    waitsUntil: number | null
  } | null
}

interface Reference {
  message: NewMessage
  /** The ID of the message that it refers to: Pombal's, or WhatsApp's. */
  id: string
  /** A quoted message must be in the recipient's chat. */
  isQuote: boolean
  isDeletion: boolean
}

const OWN = [
  'instance_id',
  'id',
  'recipient',
  'whatsapp_id',
  'state',
  'sent_at',
  'address',
  'file',
  'not_before',
  'seq',
  'deleted_at',
] as const
const RECEIVED = [
  'instance_id',
  'id',
  'chat',
  'sender',
  'addressing',
  'lid',
  'whatsapp_id',
  'type',
  'sent_at',
  'written',
  'deleted_at',
] as const

/** Resolves the references of messages to other messages. */
export class ExtrasResolver {
  readonly #statements: Statements
  readonly #find

  constructor(statements: Statements) {
    this.#statements = statements
    this.#find = prepare(statements)
  }

  async resolve(
    tx: Transaction,
    inputs: readonly { message: NewMessage; now: number }[],
  ): Promise<Map<NewMessage, ResolvedExtras | Refusal>> {
    if (await hasOldNodes(this.#statements, tx, 'conversations'))
      return new Map(inputs.map(({ message }) => [message, { kind: 'old_nodes' }]))
    const references = inputs.flatMap(({ message }) => referenceOf(message) ?? [])
    const found = await this.#findReferenced(tx, references)
    return new Map(inputs.map(({ message, now }) => [message, resolveOne(message, now, found.get(message))]))
  }

  /** @returns for each message the message that it refers to */
  async #findReferenced(tx: Transaction, references: readonly Reference[]): Promise<Map<NewMessage, Referenced>> {
    const candidates = await this.#findCandidates(tx, references)
    const found = new Map<NewMessage, Referenced>()
    const elsewhere: Reference[] = []
    for (const reference of references) {
      const { message, id } = reference
      const all = candidates.get(keyOf(message.instanceId, id)) ?? []
      const one = reference.isQuote ? all.find(({ chats }) => chats.includes(message.to)) : all[0]
      if (one !== undefined) found.set(message, one)
      else if (all.length > 0) elsewhere.push(reference)
    }
    const names = await this.#findNames(tx, elsewhere)
    for (const { message, id } of elsewhere) {
      const all = candidates.get(keyOf(message.instanceId, id)) ?? []
      const named = names.get(keyOf(message.instanceId, message.to))
      const one = all.find(({ chats }) => chats.some(chat => named?.has(chat)))
      if (one !== undefined) found.set(message, one)
    }
    return found
  }

  /** All messages with these IDs. Several messages may have the same WhatsApp ID. */
  async #findCandidates(tx: Transaction, references: readonly Reference[]): Promise<Map<string, Referenced[]>> {
    const candidates = new Map<string, Referenced[]>()
    const note = (instanceId: InstanceId, id: string, one: Referenced) => append(candidates, keyOf(instanceId, id), one)
    const keys = references.map(({ message, id, isDeletion }) => ({ instance_id: message.instanceId, id, isDeletion }))
    const ours = keys.filter(({ id }) => id.startsWith('msg_'))
    // Each read locks its rows in the same order on all nodes. A deadlock between the two reads is retried by the writer.
    const deleted = ours.filter(({ isDeletion }) => isDeletion).toSorted(byKey)
    const own = await tx.each(this.#find.ownLocked, deleted)
    own.push(
      ...(await this.#findOwn(
        tx,
        ours.filter(({ isDeletion }) => !isDeletion),
      )),
    )
    for (const row of own) note(row.instance_id, row.id, toOwn(row))
    const rest = ours.filter(({ instance_id, id }) => !candidates.has(keyOf(instance_id, id)))
    for (const row of await tx.each(this.#find.received, rest)) note(row.instance_id, row.id, toReceived(row))
    const theirs = keys.flatMap(({ instance_id, id }) =>
      id.startsWith('msg_') ? [] : [{ instance_id, whatsapp_id: id }],
    )
    for (const row of await tx.each(this.#find.ownByWhatsappId, theirs))
      if (!row.id.startsWith('cmd_')) note(row.instance_id, row.whatsapp_id, toOwn(row))
    const encoded = theirs.map(key => ({ ...key, whatsapp_id: JSON.stringify(key.whatsapp_id) }))
    for (const row of await tx.each(this.#find.receivedByWhatsappId, encoded))
      note(row.instance_id, JSON.parse(row.whatsapp_id), toReceived(row))
    return candidates
  }

  /**
   * Reads scheduled messages again with a lock: a cancellation fails only the commands that are committed. So it must be
   * committed before this read, or wait for this commit.
   */
  async #findOwn(tx: Transaction, keys: readonly { instance_id: InstanceId; id: string }[]): Promise<Own[]> {
    const rows = await tx.each(this.#find.own, keys)
    const scheduled = rows.filter(row => waitsUntil(row) !== null)
    if (scheduled.length === 0) return rows
    const locked = await tx.each(this.#find.ownShared, scheduled.toSorted(byKey))
    return [...rows.filter(row => !scheduled.includes(row)), ...locked]
  }

  /**
   * All names of each recipient: as the caller wrote it, and by number and LID as far as they are known. Without a known
   * address also the other spelling, which may be somebody else: the composer then drops the quote.
   */
  async #findNames(tx: Transaction, references: readonly Reference[]): Promise<Map<string, Set<string>>> {
    const names = new Map<string, Set<string>>()
    const keys = references.map(({ message }) => ({ instance_id: message.instanceId, number: message.to }))
    for (const { instance_id, number } of keys) names.set(keyOf(instance_id, number), new Set([number]))
    const addressed = new Set<string>()
    for (const { instance_id, number, address } of await tx.each(this.#find.number, keys)) {
      if (address === null) continue
      addressed.add(keyOf(instance_id, number))
      names.get(keyOf(instance_id, number))!.add(chatOf(address))
    }
    const asked = keys.flatMap(({ instance_id, number }) =>
      [...names.get(keyOf(instance_id, number))!].map(name => ({ instance_id, number: name, lid: name })),
    )
    const known = new Map<string, string[]>()
    for (const { instance_id, number, lid } of [
      ...(await tx.each(this.#find.contact, asked)),
      ...(await tx.each(this.#find.contactByLid, asked)),
    ]) {
      if (lid === null) continue
      append(known, keyOf(instance_id, number), lid)
      append(known, keyOf(instance_id, lid), number)
    }
    for (const { instance_id, number } of keys) {
      const all = names.get(keyOf(instance_id, number))!
      for (const name of [...all]) for (const other of known.get(keyOf(instance_id, name)) ?? []) all.add(other)
      const spelling = addressed.has(keyOf(instance_id, number)) ? null : otherSpelling(number)
      if (spelling !== null) all.add(spelling)
    }
    return names
  }
}

function referenceOf(message: NewMessage): Reference | null {
  const { command, quote } = message.extras ?? {}
  if (command !== undefined)
    return { message, id: command.targetId, isQuote: false, isDeletion: command.kind === 'delete' }
  return quote === undefined ? null : { message, id: quote, isQuote: true, isDeletion: false }
}

function resolveOne({ to, extras }: NewMessage, now: number, found: Referenced | undefined): ResolvedExtras | Refusal {
  const plain = { to, cancelled: null, notBefore: null }
  if (extras === undefined) return { extras: null, ...plain }
  const { quote, command, ...rest } = extras
  if (command !== undefined) {
    if (found === undefined) return { kind: 'refused', code: 'message_not_found' }
    const { targetId, ...content } = command
    const code = objectionTo(content.kind, found, now)
    if (code !== null) return { kind: 'refused', code }
    const { messageId, whatsappId, author, sent } = found
    const cancelled = content.kind === 'delete' && sent?.state === 'queued' && !sent.isWritten ? messageId : null
    const whole: Command = { ...content, target: { messageId, whatsappId, author } }
    const notBefore = cancelled === null ? (sent?.waitsUntil ?? null) : null
    return { extras: { ...rest, command: whole }, to: found.chats[0]!, cancelled, notBefore }
  }
  if (quote === undefined) return { extras: rest, ...plain }
  if (found === undefined) return { kind: 'refused', code: 'quote_not_found' }
  const { messageId, whatsappId, author } = found
  return { extras: { ...rest, quote: { messageId, whatsappId, author } }, ...plain }
}

type Own = Pick<Selectable<MessagesTable>, (typeof OWN)[number]>

function toOwn({ recipient, address, state, sent_at: sentAt, ...row }: Own): Referenced {
  return {
    messageId: row.id,
    whatsappId: row.whatsapp_id,
    author: null,
    chats: [recipient, ...(address === null ? [] : [chatOf(address)])],
    sent: {
      state,
      sentAt,
      isWritten: address !== null,
      isText: row.file === null && row.deleted_at === null,
      waitsUntil: waitsUntil({ state, ...row }),
    },
  }
}

/** When a scheduled message is due; null if it was released or has ended. */
function waitsUntil({ state, seq, not_before }: Pick<Own, 'state' | 'seq' | 'not_before'>): number | null {
  return state === 'queued' && seq < 0 ? not_before : null
}

function toReceived(row: Pick<Selectable<IncomingMessagesTable>, (typeof RECEIVED)[number]>): Referenced {
  const { id: messageId, chat, lid, type, sent_at: sentAt, written, deleted_at } = row
  const reference = { messageId, whatsappId: JSON.parse(row.whatsapp_id), chats: [chat] }
  if (written === null) return { ...reference, author: authorOf(row), sent: null }
  // The owner of the number wrote the message on another device.
  const isText = type === 'text' && deleted_at === null
  const sent = { state: 'sent' as const, sentAt, isWritten: true, isText, waitsUntil: null }
  return { ...reference, chats: lid === null ? [chat] : [chat, lid], author: null, sent }
}

function keyOf(instanceId: InstanceId, id: string): string {
  return `${instanceId}/${id}`
}

function byKey(one: { instance_id: string; id: string }, other: { instance_id: string; id: string }): number {
  return keyOf(one.instance_id, one.id) < keyOf(other.instance_id, other.id) ? -1 : 1
}

function append<T>(lists: Map<string, T[]>, key: string, value: T): void {
  const list = lists.get(key)
  if (list === undefined) lists.set(key, [value])
  else list.push(value)
}

function objectionTo(kind: Command['kind'], { sent, chats }: Referenced, now: number) {
  if (parseRecipient(chats[0]!) === null) return 'chat_not_writable'
  if (kind === 'read') return sent === null ? null : 'not_incoming_message'
  if (kind === 'reaction') return null
  if (sent === null) return 'not_own_message'
  if (kind === 'delete') return null
  if (!sent.isText) return 'not_editable'
  return sent.sentAt !== null && now - sent.sentAt > EDIT_WINDOW_MS ? 'edit_window_closed' : null
}

/** The address of an incoming message's sender. */
export function authorOf({
  sender,
  addressing,
  lid,
}: {
  sender: string
  addressing: Addressing | null
  lid: string | null
}): string {
  return lid ?? (addressing === null ? `${sender}@s.whatsapp.net` : `${sender}@bot`)
}

function prepare(statements: Statements) {
  return {
    own: statements.find('messages', { instance_id: 'text', id: 'text' }, OWN),
    // Locked, so that a deletion is decided before or after the message is prepared.
    ownLocked: statements.find('messages', { instance_id: 'text', id: 'text' }, OWN, { lock: 'update' }),
    ownShared: statements.find('messages', { instance_id: 'text', id: 'text' }, OWN, { lock: 'share' }),
    ownByWhatsappId: statements.find('messages', { instance_id: 'text', whatsapp_id: 'text' }, OWN, {
      where: IS_PREPARED,
    }),
    received: statements.find('incoming_messages', { instance_id: 'text', id: 'text' }, RECEIVED),
    receivedByWhatsappId: statements.find('incoming_messages', { instance_id: 'text', whatsapp_id: 'text' }, RECEIVED, {
      where: sql`length(incoming_messages.whatsapp_id) <= 100`,
    }),
    number: statements.find('numbers', { instance_id: 'text', number: 'text' }, ['instance_id', 'number', 'address']),
    contact: statements.find('contacts', { instance_id: 'text', number: 'text' }, ['instance_id', 'number', 'lid']),
    contactByLid: statements.find('contacts', { instance_id: 'text', lid: 'text' }, ['instance_id', 'number', 'lid'], {
      where: sql`contacts.lid is not null`,
    }),
  }
}
