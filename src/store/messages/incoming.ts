import { createHash } from 'node:crypto'
import { type RawBuilder, type Selectable, sql } from 'kysely'
import { type EventMedia, incomingBody } from '../../domain/events/event.ts'
import { type EventId, type InstanceId, type MessageId, newEventId, newMessageId } from '../../domain/ids.ts'
import { type IncomingChange, type IncomingMessage, incomingKeys, phoneOf } from '../../domain/incoming-message.ts'
import type { Transaction } from '../engine/backend.ts'
import { fenced, type Operation } from '../engine/operation.ts'
import type { MediaTable } from '../engine/schema/media.ts'
import type { IncomingMessagesTable } from '../engine/schema/messages.ts'
import type { Statement, Statements } from '../engine/statement.ts'
import type { EventRecorder } from '../events/event-recorder.ts'
import type { Lease } from '../leases/leases.ts'
import { decodeFacts, encodeFacts, type NewReceivedFile, ReceivedFiles } from '../media/received-files.ts'
import { Contacts, type Talk } from '../numbers/contacts.ts'
import { IncomingReferences } from './incoming-references.ts'
import type { ReceivedMedia, StoredIncoming } from './messages.ts'

export interface Incoming {
  lease: Lease
  message: IncomingMessage
  file: NewReceivedFile | null
  /** SHA-256 of the message's keys, because the sender chooses the length and content of the ID. */
  digests: readonly Uint8Array[]
  now: number
}

interface Made {
  eventId: EventId
  messageId: MessageId
  media: EventMedia | null
}

export interface IncomingOutcome {
  recorded: boolean
  deliverable: boolean
}

export function digestsOf(message: IncomingMessage | IncomingChange): Uint8Array[] {
  return incomingKeys(message).map(key => createHash('sha256').update(key).digest())
}

/**
 * Records a message, its event and its delivery. Skips a message if one of its keys is already recorded.
 *
 * The event is the deduplication record: its `incoming_digest` is the digest of the first key, under a unique index. The row
 * in `incoming_messages` has only the digest of the second key. So every incoming message needs an event, posted or not.
 */
export function incomingOperation(
  statements: Statements,
  recorder: EventRecorder,
  findKnown: ReturnType<typeof findKnownStatement>,
): Operation<Incoming, IncomingOutcome> {
  const contacts = new Contacts(statements)
  const files = new ReceivedFiles(statements)
  const insert = insertStatement(statements)
  const references = new IncomingReferences(statements)
  return {
    name: 'events.incoming',
    ...fenced,
    steps: (_, outcome) => (outcome.recorded ? [{ step: 'received' }] : []),
    keys: ({ digests }) => digests.map(hex),
    async run(tx, inputs) {
      const known = await knownOf(tx, inputs)
      const fresh = inputs.filter(input => !known.has(input))
      await references.resolve(tx, fresh)
      const withFile = fresh.filter(({ file }) => file !== null)
      const usage = await files.readUsage(tx, new Set(withFile.map(({ lease }) => lease.instanceId)))
      const made = new Map(fresh.map(input => [input, make(input, usage.get(input.lease.instanceId) ?? 0)]))
      const events = Array.from(made, ([{ lease, message, digests, now }, { eventId, messageId, media }]) => ({
        instance_id: lease.instanceId,
        id: eventId,
        kind: message.written ? ('message.written' as const) : ('message.received' as const),
        timestamp: message.sentAt,
        created_at: now,
        message_id: messageId,
        incoming_digest: digests[0]!,
        body: incomingBody(lease.instanceId, messageId, message, media),
        hasSuccessor: media !== null && media.failure === null,
      }))
      const written = await recorder.record(tx, events)
      const rows = Array.from(made).filter(([, { eventId }]) => written.events.has(eventId))
      if (rows.length > 0)
        tx.post(
          insert,
          rows.map(([input, { messageId }]) => toRow(input, messageId)),
        )
      files.insert(
        tx,
        rows.flatMap(([{ lease, file, now }, { messageId, media }]) =>
          file && media ? [{ instanceId: lease.instanceId, messageId, file, media, now }] : [],
        ),
      )
      contacts.note(tx, inputs.flatMap(talksOf))
      return inputs.map(input => {
        const ids = made.get(input)
        const recorded = ids !== undefined && written.events.has(ids.eventId)
        return { recorded, deliverable: recorded && written.deliverable.has(input.lease.instanceId) }
      })
    },
  }

  function make({ file, now }: Incoming, usedBytes: number): Made {
    const media = file && files.assess(file, usedBytes)
    return { eventId: newEventId(now), messageId: newMessageId(now), media }
  }

  /** @returns the inputs with a key that is already recorded */
  async function knownOf(tx: Transaction, inputs: readonly Incoming[]): Promise<ReadonlySet<Incoming>> {
    const keys = inputs.flatMap(({ lease, digests }) =>
      digests.map(digest => ({ instance_id: lease.instanceId, digest })),
    )
    const rows = await tx.each(findKnown, keys)
    const known = new Set(rows.map(row => `${row.instance_id}/${hex(row.digest)}`))
    return new Set(
      inputs.filter(({ lease, digests }) => digests.some(digest => known.has(`${lease.instanceId}/${hex(digest)}`))),
    )
  }
}

/** The chat of a message and its sender, with the sender's names. */
function talksOf({ lease: { instanceId }, message, now }: Incoming): Talk[] {
  const { chat, group, lid, username, name = null } = message
  if (group === undefined) return [{ instanceId, with: chat, at: now, lid, username, name }]
  const sender = message.written ? null : (phoneOf(message) ?? lid)
  const chatOnly = { instanceId, with: chat, at: now }
  return sender === null
    ? [chatOnly]
    : [chatOnly, { instanceId, with: sender, at: null, lid, username, name, isStranger: true }]
}

const BESIDES_TEXT = [
  'incoming_messages.id',
  'incoming_messages.created_at',
  'incoming_messages.sent_at',
  'incoming_messages.type',
  'incoming_messages.chat',
  'incoming_messages.sender',
  'incoming_messages.addressing',
  'incoming_messages.lid',
  'incoming_messages.whatsapp_id',
  'incoming_messages.username',
  'incoming_messages.name',
  'incoming_messages.media_id',
  'incoming_messages.file',
  'incoming_messages.details',
  'incoming_messages.edited_at',
  'incoming_messages.deleted_at',
  'incoming_messages.written',
] as const

/** A message with its medium. */
type IncomingRow = Omit<Selectable<IncomingMessagesTable>, 'instance_id' | 'alias_digest'> & {
  [K in 'file_id' | 'gone_reason' | 'mimetype' | 'size' | 'sha256']: Selectable<MediaTable>[K] | null
} & { medium: string | null }

export function findIncomingStatement(
  statements: Statements,
): Statement<{ instanceId: InstanceId; id: MessageId }, IncomingRow> {
  return statements.one((p: { instanceId: InstanceId; id: MessageId }) =>
    selectIncoming(statements)
      .where('incoming_messages.instance_id', '=', p.instanceId)
      .where('incoming_messages.id', '=', p.id),
  )
}

/** Received messages with their media. @param text selected instead of the whole text */
export function selectIncoming(
  { db }: Statements,
  text: RawBuilder<string | null> = sql.ref('incoming_messages.text'),
) {
  return db
    .selectFrom('incoming_messages')
    .leftJoin('media as m', join =>
      join
        .onRef('m.instance_id', '=', 'incoming_messages.instance_id')
        .onRef('m.id', '=', 'incoming_messages.media_id'),
    )
    .select(BESIDES_TEXT)
    .select(['m.file_id', 'm.gone_reason', 'm.id as medium', 'm.mimetype', 'm.size', 'm.sha256', text.as('text')])
}

export function toIncoming(row: IncomingRow): StoredIncoming {
  const media = mediaOf(row)
  const { chat, sender, addressing, text, name } = row
  return {
    messageId: row.id,
    createdAt: row.created_at,
    id: JSON.parse(row.whatsapp_id),
    from: sender,
    ...(addressing !== null && { addressing }),
    chat,
    lid: row.lid,
    username: row.username === null ? null : JSON.parse(row.username),
    type: row.type,
    ...(text !== null && { text: JSON.parse(text) }),
    ...(isGroup(chat) && { group: chat }),
    ...(name !== null && { name: JSON.parse(name) }),
    sentAt: row.sent_at,
    ...(row.written !== null && { written: true }),
    editedAt: row.edited_at,
    deletedAt: row.deleted_at,
    ...(media && { media }),
    ...(row.details !== null && { details: JSON.parse(row.details) }),
  }
}

function mediaOf({ media_id: id, file, ...row }: IncomingRow): ReceivedMedia | null {
  if (id === null || file === null) return null
  const stated = decodeFacts(file)
  const { mimetype, size, sha256, gone_reason } = row
  if (row.file_id !== null && mimetype !== null && size !== null && sha256 !== null)
    return { id, facts: { ...stated, mimetype, size, sha256 }, state: 'ready' }
  if (row.medium === null || gone_reason !== null) return { id, facts: stated, state: gone_reason ?? 'expired' }
  return { id, facts: stated, state: 'pending' }
}

export function isGroup(chat: string): boolean {
  return chat.endsWith('@g.us')
}

function toRow({ lease, message, file, digests, now }: Incoming, messageId: MessageId) {
  const { id, from, addressing, chat, lid, username, type, text, name, sentAt, details } = message
  return {
    instance_id: lease.instanceId,
    id: messageId,
    created_at: now,
    sent_at: sentAt,
    type,
    chat,
    sender: from,
    addressing: addressing ?? null,
    lid,
    alias_digest: digests[1] ?? null,
    whatsapp_id: JSON.stringify(id),
    username: username === null ? null : JSON.stringify(username),
    name: name === undefined ? null : JSON.stringify(name),
    text: text === undefined ? null : JSON.stringify(text),
    media_id: file?.id ?? null,
    file: file && encodeFacts(file.facts),
    details: details === undefined ? null : JSON.stringify(details),
    written: message.written ? 1 : null,
  }
}

function hex(digest: Uint8Array): string {
  return Buffer.from(digest).toString('hex')
}

/** Finds those of the given keys that are recorded: first keys are in `events`, second keys in `incoming_messages`. */
export function findKnownStatement(statements: Statements) {
  return statements.rows({ instance_id: 'text', digest: 'blob' }, db =>
    db
      .selectFrom('input')
      .select(['input.instance_id', 'input.digest'])
      .where(({ or, exists }) =>
        or([
          exists(sql`(select 1 from events as e
            where e.instance_id = input.instance_id and e.incoming_digest = input.digest)`),
          exists(sql`(select 1 from incoming_messages as i
            where i.instance_id = input.instance_id and i.alias_digest = input.digest)`),
        ]),
      ),
  )
}

function insertStatement(statements: Statements) {
  return statements.insert('incoming_messages', {
    instance_id: 'text',
    id: 'text',
    created_at: 'integer',
    sent_at: 'integer',
    type: 'text',
    chat: 'text',
    sender: 'text',
    addressing: 'text?',
    lid: 'text?',
    alias_digest: 'blob?',
    whatsapp_id: 'text',
    username: 'text?',
    name: 'text?',
    text: 'text?',
    media_id: 'text?',
    file: 'text?',
    details: 'text?',
    written: 'integer?',
  })
}
