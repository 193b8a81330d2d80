import { type Selectable, sql } from 'kysely'
import type { MessageExtras } from '../../domain/conversation.ts'
import { type Changed, type ChangeEventKind, changeBody } from '../../domain/events/event.ts'
import { type InstanceId, isCommandId, type MessageId, newEventId } from '../../domain/ids.ts'
import type { IncomingChange } from '../../domain/incoming-message.ts'
import type { Transaction } from '../engine/backend.ts'
import { fencedOneByOne, type Operation } from '../engine/operation.ts'
import { type IncomingMessagesTable, IS_PREPARED, type MessagesTable } from '../engine/schema/messages.ts'
import type { Statements } from '../engine/statement.ts'
import type { EventRecorder } from '../events/event-recorder.ts'
import type { Lease } from '../leases/leases.ts'
import { chatOf } from '../numbers/contacts.ts'
import { Changes } from './changes.ts'
import type { findKnownStatement } from './incoming.ts'

interface ChangeInput {
  lease: Lease
  change: IncomingChange
  /** SHA-256 of the keys of the change. */
  digests: readonly Uint8Array[]
  now: number
}

export interface ChangeOutcome {
  /** `ignored`: WhatsApp does not let this sender change the message, or it is deleted already. */
  outcome: 'recorded' | 'duplicate' | 'ignored'
  deliverable: boolean
}

/** A stored message that may be the target of a change. */
interface Candidate extends Changed {
  messageId: MessageId
  /** All names of its chat. */
  chats: readonly (string | null)[]
  isDeleted: boolean
  /** Null: it has not been acknowledged yet. */
  sentAt: number | null
  editedAt: number | null
  /** Its sender; null if the instance's number sent it. */
  author: Pick<Selectable<IncomingMessagesTable>, 'sender' | 'addressing' | 'lid'> | null
}

const TIMES = ['sent_at', 'edited_at', 'deleted_at'] as const
const SENT = ['id', 'recipient', 'address', 'extras', ...TIMES] as const
const DELIVERED = ['id', 'chat', 'sender', 'addressing', 'lid', 'written', ...TIMES] as const

/**
 * WhatsApp lets people edit a message for 15 minutes and delete it for 60 hours. The longer times here are for changes
 * that arrive late. Without limits, a contact could rewrite every message that the contact ever sent.
 */
const EDITABLE_MS = 60 * 60_000
const DELETABLE_MS = 72 * 60 * 60_000

/**
 * Records an edit or deletion with its event, and changes the text of the message. Its event is the deduplication record, like
 * that of a message. Changes are rare, so each is processed alone.
 */
export function changeOperation(
  statements: Statements,
  recorder: EventRecorder,
  findKnown: ReturnType<typeof findKnownStatement>,
): Operation<ChangeInput, ChangeOutcome> {
  const changes = new Changes(statements)
  const { findSent, findDelivered, findEvent, chain } = prepare(statements)
  return fencedOneByOne('events.change', async (tx, { lease, change, digests, now }: ChangeInput) => {
    const { instanceId } = lease
    const keys = digests.map(digest => ({ instance_id: instanceId, digest }))
    if ((await tx.each(findKnown, keys)).length > 0) return { outcome: 'duplicate', deliverable: false }
    const candidates = (await find(tx, instanceId, change.target)).filter(({ chats }) => isInChat(change, chats))
    const target = candidates.find(candidate => mayChange(change, candidate) && !candidate.isDeleted)
    if (target === undefined && (candidates.length > 0 || change.byAdmin === false))
      return { outcome: 'ignored', deliverable: false }
    if (target !== undefined) {
      const text = change.change === 'edit' ? (change.text ?? '') : null
      if (isInTime(change, target))
        await changes.apply(tx, [{ instanceId, messageId: target.messageId, text, at: change.sentAt }])
      // The deliveries of an incoming message's event need the ID of the message: otherwise the event of the
      // change would not wait for them.
      const events = await tx.each(findEvent, [{ instance_id: instanceId, message_id: target.messageId }])
      tx.post(
        chain,
        events.map(({ id: event_id }) => ({ instance_id: instanceId, event_id, message_id: target.messageId })),
      )
    }
    const unknown = { messageId: null, direction: change.ofOwn ? ('out' as const) : ('in' as const) }
    const kind: ChangeEventKind = change.change === 'edit' ? 'message.edited' : 'message.deleted'
    const { deliverable } = await recorder.record(tx, [
      {
        instance_id: instanceId,
        id: newEventId(now),
        kind,
        timestamp: change.sentAt,
        created_at: now,
        message_id: target?.messageId ?? null,
        // The key names an address that WhatsApp itself stated, because WhatsApp states the same one when it delivers the change again.
        // WhatsApp uses LIDs, which are in the last key, more often than numbers.
        incoming_digest: change.isLidLookedUp ? digests[0]! : digests.at(-1)!,
        body: changeBody(instanceId, target ?? unknown, change),
      },
    ])
    return { outcome: 'recorded', deliverable: deliverable.has(instanceId) }
  })

  async function find(tx: Transaction, instance_id: InstanceId, id: string): Promise<Candidate[]> {
    const sent = await tx.each(findSent, [{ instance_id, whatsapp_id: id }])
    const delivered = await tx.each(findDelivered, [{ instance_id, whatsapp_id: JSON.stringify(id) }])
    return [...sent.filter(row => !isCommandId(row.id)).map(toSent), ...delivered.map(toDelivered)]
  }
}

function toSent(row: Pick<Selectable<MessagesTable>, (typeof SENT)[number]>): Candidate {
  const chats = [row.recipient, row.address === null ? null : chatOf(row.address)]
  const { metadata }: MessageExtras = JSON.parse(row.extras ?? '{}')
  return { messageId: row.id, direction: 'out', chats, ...timesOf(row), author: null, metadata }
}

function toDelivered(row: Pick<Selectable<IncomingMessagesTable>, (typeof DELIVERED)[number]>): Candidate {
  const { id: messageId, chat, lid, written } = row
  const chats = [chat, chat.endsWith('@g.us') ? null : lid]
  if (written !== null) return { messageId, direction: 'out', chats, ...timesOf(row), author: null }
  return { messageId, direction: 'in', chats, ...timesOf(row), author: row }
}

function timesOf({ sent_at, edited_at, deleted_at }: Record<(typeof TIMES)[number], number | null>) {
  return { sentAt: sent_at, editedAt: edited_at, isDeleted: deleted_at !== null }
}

function isInChat({ chat, group, lid }: IncomingChange, chats: Candidate['chats']): boolean {
  const names = group === undefined && lid !== null ? [chat, lid] : [chat]
  return chats.some(name => name !== null && names.includes(name))
}

/** Only the author may edit a message. The author and, in a group, its admins may delete it. */
function mayChange(change: IncomingChange, { author }: Candidate): boolean {
  const { written, group, byAdmin, ofOwn } = change
  const isOfAnother = change.change === 'delete' && group !== undefined && (byAdmin === true || (written && !ofOwn))
  if (isOfAnother && !ofOwn) return author !== null && change.author !== undefined && isBy(change.author, author)
  if (isOfAnother || written) return author === null
  return author !== null && isBy(change, author)
}

function isBy(
  { from, addressing, lid }: Pick<IncomingChange, 'from' | 'addressing' | 'lid'>,
  author: NonNullable<Candidate['author']>,
): boolean {
  const isNamed = author.sender === from && author.addressing === (addressing ?? null)
  return isNamed || (author.lid !== null && author.lid === lid)
}

/** Whether the change is applied to the text. Its event is recorded in any case. */
function isInTime({ change, written, sentAt }: IncomingChange, target: Candidate): boolean {
  // WhatsApp's times are whole seconds.
  if (change === 'edit' && target.editedAt !== null && sentAt < Math.floor(target.editedAt / 1_000) * 1_000)
    return false
  if (written || target.sentAt === null) return true
  return sentAt - target.sentAt <= (change === 'edit' ? EDITABLE_MS : DELETABLE_MS)
}

function prepare(statements: Statements) {
  return {
    findSent: statements.find('messages', { instance_id: 'text', whatsapp_id: 'text' }, SENT, {
      where: IS_PREPARED,
      lock: 'update',
    }),
    findDelivered: statements.find('incoming_messages', { instance_id: 'text', whatsapp_id: 'text' }, DELIVERED, {
      where: sql`length(incoming_messages.whatsapp_id) <= 100`,
    }),
    findEvent: statements.find('events', { instance_id: 'text', message_id: 'text' }, ['id'], {
      where: sql`events.kind in ('message.received', 'message.written')`,
    }),
    // The update locks the deliveries: an attempt that ends now is recorded before the update, or reads the new value.
    chain: statements.rows({ instance_id: 'text', event_id: 'text', message_id: 'text' }, db =>
      db
        .updateTable('deliveries')
        .from('input')
        .set(eb => ({ message_id: eb.ref('input.message_id') }))
        .whereRef('deliveries.instance_id', '=', 'input.instance_id')
        .whereRef('deliveries.event_id', '=', 'input.event_id')
        .where('deliveries.message_id', 'is', null)
        .where('deliveries.redelivery', '=', 0),
    ),
  }
}
