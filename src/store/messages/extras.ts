import { sql } from 'kysely'
import { type Command, EDIT_WINDOW_MS, type MessageExtras, type MessageReferenced } from '../../domain/conversation.ts'
import type { InstanceId, MessageId } from '../../domain/ids.ts'
import type { Addressing } from '../../domain/incoming-message.ts'
import type { MessageState } from '../../domain/message.ts'
import type { Transaction } from '../engine/backend.ts'
import { IS_PREPARED } from '../engine/schema/messages.ts'
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
  /** A command on a scheduled message has its moment. */
  notBefore: number | null
}

type Refusal = Extract<AcceptOutcome, { kind: 'refused' | 'old_nodes' }>

/** A message that another one refers to. */
interface Referenced extends MessageReferenced {
  /** The chat as it is named in its row, and as WhatsApp names it. */
  chats: readonly string[]
  sent: {
    state: MessageState
    sentAt: number | null
    isWritten: boolean
    isText: boolean
    waitsUntil: number | null
  } | null
}

const OWN = ['id', 'recipient', 'whatsapp_id', 'state', 'sent_at', 'address', 'media_id', 'not_before', 'seq'] as const
const RECEIVED = ['id', 'chat', 'sender', 'addressing', 'lid', 'whatsapp_id'] as const

/** Resolves what messages refer to. Plain texts are not in its result. */
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
    const resolved = new Map<NewMessage, ResolvedExtras | Refusal>()
    const asking = inputs.filter(({ message }) => message.extras !== undefined || message.notBefore !== undefined)
    if (asking.length === 0) return resolved
    const waits = await hasOldNodes(this.#statements, tx, 'conversations')
    for (const { message, now } of asking)
      resolved.set(message, waits ? { kind: 'old_nodes' } : await this.#resolveOne(tx, message, now))
    return resolved
  }

  async #resolveOne(tx: Transaction, message: NewMessage, now: number): Promise<ResolvedExtras | Refusal> {
    const { instanceId, to, extras } = message
    const plain = { to, cancelled: null, notBefore: null }
    if (extras === undefined) return { extras: null, ...plain }
    const { quote, command, ...rest } = extras
    if (command !== undefined) {
      const { targetId, ...content } = command
      const target = await this.#findReferenced(tx, instanceId, targetId)
      if (target === null) return { kind: 'refused', code: 'message_not_found' }
      const code = objectionTo(content.kind, target, now)
      if (code !== null) return { kind: 'refused', code }
      const { messageId, whatsappId, author, sent } = target
      const cancelled = content.kind === 'delete' && sent?.state === 'queued' && !sent.isWritten ? messageId : null
      const whole: Command = { ...content, target: { messageId, whatsappId, author } }
      const notBefore = cancelled === null ? (sent?.waitsUntil ?? null) : null
      return { extras: { ...rest, command: whole }, to: target.chats[0]!, cancelled, notBefore }
    }
    if (quote === undefined) return { extras: rest, ...plain }
    const quoted = await this.#findReferenced(tx, instanceId, quote)
    const names = quoted && (await this.#namesOf(tx, instanceId, to))
    if (!quoted || !names || !quoted.chats.some(chat => names.has(chat)))
      return { kind: 'refused', code: 'quote_not_found' }
    const { messageId, whatsappId, author } = quoted
    return { extras: { ...rest, quote: { messageId, whatsappId, author } }, ...plain }
  }

  /** @param id of the message, or WhatsApp's */
  async #findReferenced(tx: Transaction, instance_id: InstanceId, id: string): Promise<Referenced | null> {
    const isOurs = id.startsWith('msg_')
    const [own] = isOurs
      ? await tx.each(this.#find.own, [{ instance_id, id }])
      : await tx.each(this.#find.ownByWhatsappId, [{ instance_id, whatsapp_id: id }])
    if (own) {
      const { recipient, address, state, sent_at: sentAt, media_id, seq, not_before } = own
      if (own.id.startsWith('cmd_')) return null
      const isText = media_id === null
      const waitsUntil = state === 'queued' && seq < 0 ? not_before : null
      return {
        messageId: own.id,
        whatsappId: own.whatsapp_id,
        author: null,
        chats: [recipient, ...(address === null ? [] : [chatOf(address)])],
        sent: { state, sentAt, isWritten: address !== null, isText, waitsUntil },
      }
    }
    const [received] = isOurs
      ? await tx.each(this.#find.received, [{ instance_id, id }])
      : await tx.each(this.#find.receivedByWhatsappId, [{ instance_id, whatsapp_id: JSON.stringify(id) }])
    if (!received) return null
    return {
      messageId: received.id,
      whatsappId: JSON.parse(received.whatsapp_id),
      author: authorOf(received),
      chats: [received.chat],
      sent: null,
    }
  }

  /** All names of a recipient: as the caller wrote it, and by number and LID as far as they are known. */
  async #namesOf(tx: Transaction, instance_id: InstanceId, to: string): Promise<ReadonlySet<string>> {
    const [number] = await tx.each(this.#find.number, [{ instance_id, number: to }])
    const names = new Set([to, ...(number?.address ? [chatOf(number.address)] : [])])
    for (const name of [...names]) {
      const known = [
        ...(await tx.each(this.#find.contact, [{ instance_id, number: name }])),
        ...(await tx.each(this.#find.contactByLid, [{ instance_id, lid: name }])),
      ]
      for (const { number, lid } of known) for (const one of [number, lid]) if (one !== null) names.add(one)
    }
    return names
  }
}

function objectionTo(kind: Command['kind'], { sent }: Referenced, now: number) {
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
    // Locked, so that a deletion is decided before or after the message is prepared.
    own: statements.find('messages', { instance_id: 'text', id: 'text' }, OWN, { lock: 'update' }),
    ownByWhatsappId: statements.find('messages', { instance_id: 'text', whatsapp_id: 'text' }, OWN, {
      where: IS_PREPARED,
    }),
    received: statements.find('incoming_messages', { instance_id: 'text', id: 'text' }, RECEIVED),
    receivedByWhatsappId: statements.find('incoming_messages', { instance_id: 'text', whatsapp_id: 'text' }, RECEIVED, {
      where: sql`length(incoming_messages.whatsapp_id) <= 100`,
    }),
    number: statements.find('numbers', { instance_id: 'text', number: 'text' }, ['address']),
    contact: statements.find('contacts', { instance_id: 'text', number: 'text' }, ['number', 'lid']),
    contactByLid: statements.find('contacts', { instance_id: 'text', lid: 'text' }, ['number', 'lid'], {
      where: sql`contacts.lid is not null`,
    }),
  }
}
