import type { Selectable } from 'kysely'
import { failureBody, progressBody } from '../../domain/event.ts'
import { type InstanceId, type MessageId, newEventId } from '../../domain/ids.ts'
import {
  canFail,
  type MessageFailure,
  type MessageProgress,
  type MessageState,
  messageFailure,
  movesTo,
} from '../../domain/message.ts'
import type { Transaction } from '../engine/backend.ts'
import { fenced, fencedOneByOne, type Operation } from '../engine/operation.ts'
import { IS_PREPARED, IS_QUEUED, type MessagesTable } from '../engine/schema/messages.ts'
import type { Statements } from '../engine/statement.ts'
import type { EventRecorder, NewEvent } from '../events/event-recorder.ts'
import type { Lease } from '../leases/leases.ts'
import { Contacts } from '../numbers/stored-numbers.ts'
import type { ProgressOutcome } from './messages.ts'

type Move = { state: MessageProgress } | { state: 'failed'; failure: MessageFailure }

/** The columns that progress reads and changes. */
const MOVING = [
  'instance_id',
  'id',
  'recipient',
  'whatsapp_id',
  'address',
  'state',
  'sent_at',
  'delivered_at',
  'read_at',
  'failed_at',
  'failure_code',
  'failure_message',
  'last_event_at',
] as const
type MovingMessage = Pick<Selectable<MessagesTable>, (typeof MOVING)[number]>

const STAMP = { sent: 'sent_at', delivered: 'delivered_at', read: 'read_at', failed: 'failed_at' } as const

export interface ProgressInput {
  lease: Lease
  /** If set, the message need not be prepared. */
  id?: MessageId | undefined
  whatsappId: string
  /** The state it reached, or why it failed. */
  news: MessageProgress | MessageFailure
  now: number
  /** Addresses of the reporting party, unless that is WhatsApp or this service. */
  from?: readonly string[] | undefined
}

interface Progressed {
  outcome: ProgressOutcome
  deliverable: boolean
}

interface QueueFailure {
  lease: Lease
  /** The failure of messages that were never written to a socket. */
  failure: MessageFailure
  now: number
  limit: number
}

/** Moves messages forward. Each move records its event and delivery. */
export class Progress {
  readonly record: Operation<ProgressInput, Progressed>
  readonly failQueue: Operation<QueueFailure, { count: number; deliverable: boolean }>
  readonly #recorder: EventRecorder
  readonly #contacts: Contacts
  readonly #statements

  constructor(statements: Statements, recorder: EventRecorder) {
    this.#recorder = recorder
    this.#contacts = new Contacts(statements)
    this.#statements = prepare(statements)
    this.record = {
      name: 'messages.progress',
      ...fenced,
      keys: ({ whatsappId }) => [whatsappId],
      run: (tx, inputs) => this.#record(tx, inputs),
    }
    this.failQueue = fencedOneByOne('messages.failQueue', (tx, input) => this.#failQueue(tx, input))
  }

  async #record(tx: Transaction, inputs: readonly ProgressInput[]): Promise<Progressed[]> {
    const messages = await this.#find(tx, inputs)
    const found = inputs.map(({ lease, whatsappId, news, now, from }) => {
      const message = messages.get(`${lease.instanceId}/${whatsappId}`)
      if (message === undefined) return null
      const foreign = from !== undefined && !from.includes(message.address ?? '')
      return { message, foreign, moves: foreign ? [] : movesOf(message.state, news), now }
    })
    const deliverable = await this.#advance(
      tx,
      found.filter(change => change !== null && change.moves.length > 0).map(change => change!),
    )
    this.#contacts.note(
      tx,
      found
        .filter(change => change?.moves.some(({ state }) => state === 'sent'))
        .map(change => ({ instanceId: change!.message.instance_id, with: change!.message.recipient })),
    )
    return found.map((change): Progressed => {
      if (change === null) return { outcome: 'unknown_message', deliverable: false }
      if (change.foreign) return { outcome: 'foreign', deliverable: false }
      if (change.moves.length === 0) return { outcome: 'unchanged', deliverable: false }
      return { outcome: 'recorded', deliverable: deliverable.has(change.message.instance_id) }
    })
  }

  /** @returns the messages by instance and WhatsApp ID */
  async #find(tx: Transaction, inputs: readonly ProgressInput[]): Promise<ReadonlyMap<string, MovingMessage>> {
    const byId = inputs.flatMap(({ lease, id }) => (id === undefined ? [] : [{ instance_id: lease.instanceId, id }]))
    const byWhatsappId = inputs
      .filter(({ id }) => id === undefined)
      .map(({ lease, whatsappId }) => ({ instance_id: lease.instanceId, whatsapp_id: whatsappId }))
    const rows: MovingMessage[] = []
    if (byWhatsappId.length > 0) rows.push(...(await tx.each(this.#statements.findPrepared, byWhatsappId)))
    if (byId.length > 0) rows.push(...(await tx.each(this.#statements.find, byId)))
    return new Map(rows.map(row => [`${row.instance_id}/${row.whatsapp_id}`, row]))
  }

  async #failQueue(tx: Transaction, { lease, failure, now, limit }: QueueFailure) {
    const queued = await tx.run(this.#statements.findQueued, { instanceId: lease.instanceId, limit })
    const unwritten: Move[] = [{ state: 'failed', failure }]
    const written: Move[] = [{ state: 'failed', failure: messageFailure('unconfirmed') }]
    const deliverable = await this.#advance(
      tx,
      queued.map(message => ({ message, moves: message.address === null ? unwritten : written, now })),
    )
    return { count: queued.length, deliverable: deliverable.size > 0 }
  }

  /** @returns the instances with a new delivery that may start now */
  async #advance(
    tx: Transaction,
    changes: readonly { message: MovingMessage; moves: readonly Move[]; now: number }[],
  ): Promise<ReadonlySet<InstanceId>> {
    if (changes.length === 0) return new Set()
    const events: NewEvent[] = []
    const messages: MovingMessage[] = []
    for (const { message, moves, now } of changes) {
      let moved = message
      for (const move of moves) {
        moved = after(moved, move, now)
        events.push(eventOf(moved, move, now))
      }
      messages.push(moved)
    }
    tx.post(this.#statements.update, messages)
    const { deliverable } = await this.#recorder.record(tx, events)
    return deliverable
  }
}

function movesOf(state: MessageState, news: MessageProgress | MessageFailure): readonly Move[] {
  if (typeof news === 'string') return movesTo(state, news).map(reached => ({ state: reached }))
  return canFail(state) ? [{ state: 'failed', failure: news }] : []
}

function after(message: MovingMessage, move: Move, now: number): MovingMessage {
  const at = Math.max(now, message.last_event_at ?? 0)
  const failure =
    move.state === 'failed' ? { failure_code: move.failure.code, failure_message: move.failure.message } : {}
  return { ...message, ...failure, state: move.state, [STAMP[move.state]]: at, last_event_at: at }
}

function eventOf(message: MovingMessage, move: Move, now: number): NewEvent {
  const subject = { instanceId: message.instance_id, messageId: message.id, to: message.recipient }
  const timestamp = message.last_event_at!
  return {
    instanceId: message.instance_id,
    id: newEventId(now),
    kind: `message.${move.state}`,
    timestamp,
    createdAt: now,
    messageId: message.id,
    incomingDigest: null,
    body:
      move.state === 'failed'
        ? failureBody(subject, move.failure, timestamp)
        : progressBody(subject, move.state, timestamp),
  }
}

function prepare(statements: Statements) {
  const { db } = statements
  return {
    find: statements.find('messages', { instance_id: 'text', id: 'text' }, MOVING, { lock: 'update' }),

    findPrepared: statements.find('messages', { instance_id: 'text', whatsapp_id: 'text' }, MOVING, {
      where: IS_PREPARED,
      lock: 'update',
    }),

    findQueued: statements.one((p: { instanceId: InstanceId; limit: number }) =>
      statements.locking(
        db
          .selectFrom('messages')
          .select(MOVING)
          .where('instance_id', '=', p.instanceId)
          .where(IS_QUEUED)
          .orderBy('seq')
          .limit(p.limit),
        'update',
        'messages',
      ),
    ),

    update: statements.update(
      'messages',
      { instance_id: 'text', id: 'text' },
      {
        state: 'text',
        sent_at: 'integer?',
        delivered_at: 'integer?',
        read_at: 'integer?',
        failed_at: 'integer?',
        failure_code: 'text?',
        failure_message: 'text?',
        last_event_at: 'integer?',
      },
    ),
  }
}
