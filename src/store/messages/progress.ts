import type { Selectable } from 'kysely'
import { type MessageExtras, summaryOf } from '../../domain/conversation.ts'
import { commandBody, failureBody, progressBody } from '../../domain/events/event.ts'
import { type InstanceId, isCommandId, type MessageId, newEventId } from '../../domain/ids.ts'
import {
  canFail,
  type MessageFailure,
  type MessageProgress,
  type MessageStep,
  messageFailure,
  movesTo,
} from '../../domain/message.ts'
import { addressOf } from '../conversations/chat-lines.ts'
import type { Transaction } from '../engine/backend.ts'
import { fenced, fencedOneByOne, type Operation } from '../engine/operation.ts'
import { IS_PREPARED, IS_QUEUED, type MessagesTable } from '../engine/schema/messages.ts'
import type { Statements } from '../engine/statement.ts'
import type { EventRecorder, NewEvent } from '../events/event-recorder.ts'
import type { Lease } from '../leases/leases.ts'
import { Contacts, chatOf, type Talk } from '../numbers/contacts.ts'
import type { Cancellation } from './accepting.ts'
import { Changes, type EndedCommand } from './changes.ts'
import { CommandsOnMessages } from './commands-on-messages.ts'
import type { ProgressOutcome } from './messages.ts'

/** The state that a message reaches, or why it fails. */
type Move = MessageProgress | MessageFailure

interface Advance {
  message: MovingMessage
  moves: readonly Move[]
  now: number
}

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
  'extras',
  'traceparent',
] as const
type MovingMessage = Pick<Selectable<MessagesTable>, (typeof MOVING)[number]>

const STAMP = { sent: 'sent_at', delivered: 'delivered_at', read: 'read_at', failed: 'failed_at' } as const

export interface ProgressInput {
  lease: Lease
  /** If set, the message need not be prepared. */
  id?: MessageId | undefined
  whatsappId: string
  news: Move
  now: number
  /** Addresses of the person who sent the receipt. Not set for news from WhatsApp or this service. */
  from?: readonly string[] | undefined
}

interface Progressed {
  outcome: ProgressOutcome
  messageId: MessageId | null
  steps: readonly MessageStep[]
  deliverable: boolean
}

interface QueueFailure {
  lease: Lease
  /** The failure of messages that were never written to a socket. */
  failure: MessageFailure
  now: number
  limit: number
}

interface QueueFailed {
  count: number
  steps: readonly MessageStep[]
  deliverable: boolean
}

/** Moves messages forward. Each move records its event and delivery. */
export class Progress {
  readonly move: Operation<ProgressInput, Progressed>
  readonly failQueue: Operation<QueueFailure, QueueFailed>
  readonly #recorder: EventRecorder
  readonly #contacts: Contacts
  readonly #changes: Changes
  readonly #commands: CommandsOnMessages
  readonly #statements

  constructor(statements: Statements, recorder: EventRecorder) {
    this.#recorder = recorder
    this.#contacts = new Contacts(statements)
    this.#changes = new Changes(statements)
    this.#commands = new CommandsOnMessages(statements)
    this.#statements = prepare(statements)
    this.move = this.#moveOperation()
    this.failQueue = {
      ...fencedOneByOne('messages.failQueue', (tx, input: QueueFailure) => this.#failQueue(tx, input)),
      steps: (_, { steps }) => steps,
    }
  }

  #moveOperation(): Operation<ProgressInput, Progressed> {
    return {
      name: 'messages.progress',
      ...fenced,
      keys: ({ whatsappId }) => [whatsappId],
      steps: (_, { steps }) => steps,
      run: async (tx, inputs) => {
        const messages = await this.#find(tx, inputs)
        const recorded: Progressed[] = []
        const changes: Advance[] = []
        const newContacts: Talk[] = []
        for (const { lease, whatsappId, news, now, from } of inputs) {
          const message = messages.get(`${lease.instanceId}/${whatsappId}`)
          const isForeign = message !== undefined && from !== undefined && !from.includes(message.address ?? '')
          const moves = message === undefined || isForeign ? [] : movesOf(message, news)
          const outcome = isForeign ? 'foreign' : moves.length > 0 ? 'recorded' : 'unchanged'
          recorded.push({
            outcome: message === undefined ? 'unknown_message' : outcome,
            messageId: message?.id ?? null,
            steps: message === undefined ? [] : stepsOf(message, moves),
            deliverable: false,
          })
          if (message === undefined || moves.length === 0) continue
          changes.push({ message, moves, now })
          if (moves[0] === 'sent' && !isCommandId(message.id)) newContacts.push(...talksOf(message, now))
        }
        const deliverable = await this.#advance(tx, changes)
        this.#contacts.note(tx, newContacts)
        for (const [index, progressed] of recorded.entries()) {
          const { instanceId } = inputs[index]!.lease
          progressed.deliverable = progressed.outcome === 'recorded' && deliverable.has(instanceId)
        }
        return recorded
      },
    }
  }

  /** @returns the messages by instance and WhatsApp ID */
  async #find(tx: Transaction, inputs: readonly ProgressInput[]): Promise<ReadonlyMap<string, MovingMessage>> {
    const byId: { instance_id: InstanceId; id: MessageId }[] = []
    const byWhatsappId: { instance_id: InstanceId; whatsapp_id: string }[] = []
    for (const { lease, id, whatsappId: whatsapp_id } of inputs) {
      const { instanceId: instance_id } = lease
      if (id === undefined) byWhatsappId.push({ instance_id, whatsapp_id })
      else byId.push({ instance_id, id })
    }
    const rows: MovingMessage[] = []
    if (byWhatsappId.length > 0) rows.push(...(await tx.each(this.#statements.findPrepared, byWhatsappId)))
    if (byId.length > 0) rows.push(...(await tx.each(this.#statements.find, byId)))
    const found = new Map<string, MovingMessage>()
    for (const row of rows) found.set(`${row.instance_id}/${row.whatsapp_id}`, row)
    return found
  }

  async #failQueue(tx: Transaction, { lease, failure, now, limit }: QueueFailure): Promise<QueueFailed> {
    const queued = await tx.run(this.#statements.findQueued, { instanceId: lease.instanceId, limit })
    const written = messageFailure('unconfirmed')
    const changes = queued.map(message => ({ message, moves: [message.address === null ? failure : written], now }))
    const deliverable = await this.#advance(tx, changes)
    const steps = changes.flatMap(({ message, moves }) => stepsOf(message, moves))
    return { count: queued.length, steps, deliverable: deliverable.size > 0 }
  }

  /**
   * Ends messages that were never written, the commands that wait for them, and the commands that delete them. The rows of the
   * messages and of the last commands are locked or new.
   */
  async cancel(tx: Transaction, cancellations: readonly Cancellation[]): Promise<void> {
    const changes: Advance[] = []
    for (const cancellation of cancellations) {
      const { instanceId, message, command, now } = cancellation
      const waiting = (await this.#commands.findWaiting(tx, instanceId, message)).filter(id => id !== command)
      const keys = [message, ...waiting, command].map(id => ({ instance_id: instanceId, id }))
      const rows = new Map((await tx.each(this.#statements.find, keys)).map(row => [row.id, row]))
      changes.push({ message: rows.get(message)!, moves: [messageFailure('cancelled')], now })
      for (const id of waiting) {
        const row = rows.get(id)
        if (row?.state === 'queued') changes.push({ message: row, moves: [messageFailure('message_failed')], now })
      }
      const deletion = rows.get(command)!
      // As if it had been sent, so that it is found among the messages of its chat.
      tx.post(this.#statements.setAddress, [
        { instance_id: instanceId, id: command, address: addressOf(deletion.recipient), content: new Uint8Array() },
      ])
      changes.push({ message: deletion, moves: ['sent'], now })
    }
    await this.#advance(tx, changes)
  }

  /** @returns the instances with a new delivery that may start now */
  async #advance(tx: Transaction, changes: readonly Advance[]): Promise<ReadonlySet<InstanceId>> {
    if (changes.length === 0) return new Set()
    const events: NewEvent[] = []
    const messages: MovingMessage[] = []
    const commands: EndedCommand[] = []
    for (const { message, moves, now } of changes) {
      let moved = message
      for (const move of moves) {
        moved = after(moved, move, now)
        events.push(eventOf(moved, move, now))
      }
      messages.push(moved)
      if (isCommandId(moved.id)) commands.push({ ...moved, failed: moved.state === 'failed', at: now })
    }
    tx.post(this.#statements.update, messages)
    if (commands.length > 0) await this.#changes.applyCommands(tx, commands)
    const { deliverable } = await this.#recorder.record(tx, events)
    return deliverable
  }
}

/** A message makes both spellings of a number contacts. The spelling that WhatsApp knows is the chat. */
function talksOf({ instance_id: instanceId, recipient, address }: MovingMessage, at: number): Talk[] {
  const chat = address === null ? recipient : chatOf(address)
  const talk = { instanceId, with: chat, at }
  return chat === recipient ? [talk] : [talk, { instanceId, with: recipient, at: null }]
}

/** A command is done once WhatsApp has it, so later receipts do not change it. */
function movesOf({ id, state, address }: MovingMessage, news: Move): readonly Move[] {
  if (typeof news === 'string') return movesTo(state, isCommandId(id) ? 'sent' : news)
  if (isCommandId(id) ? state !== 'queued' : !canFail(state, news.code)) return []
  // The message may have been written after the reporter read it.
  return [news.code === 'expired' && address !== null ? messageFailure('unconfirmed') : news]
}

/** The steps that the metrics count. They do not count commands. */
function stepsOf({ id }: MovingMessage, moves: readonly Move[]): MessageStep[] {
  if (isCommandId(id)) return []
  return moves.map(move => (typeof move === 'string' ? { step: move } : { step: 'failed', code: move.code }))
}

function after(message: MovingMessage, move: Move, now: number): MovingMessage {
  const at = Math.max(now, message.last_event_at ?? 0)
  const reached =
    typeof move === 'string'
      ? { state: move }
      : { state: 'failed' as const, failure_code: move.code, failure_message: move.message }
  return { ...message, ...reached, [STAMP[reached.state]]: at, last_event_at: at }
}

function eventOf(message: MovingMessage, move: Move, now: number): NewEvent {
  const { instance_id, id: message_id, traceparent } = message
  const timestamp = message.last_event_at!
  const { metadata, quote, command }: MessageExtras = message.extras === null ? {} : JSON.parse(message.extras)
  const row = {
    instance_id,
    id: newEventId(now),
    timestamp,
    created_at: now,
    message_id,
    incoming_digest: null,
    traceparent,
  }
  const subject = { instanceId: instance_id, messageId: message_id, to: message.recipient, metadata }
  if (command !== undefined) {
    const failure = typeof move === 'string' ? null : move
    const kind = failure === null ? 'command.done' : 'command.failed'
    return { ...row, kind, body: commandBody(subject, summaryOf(command), failure, timestamp) }
  }
  const shown = { ...subject, ...(quote?.dropped && { quoted: false as const }) }
  if (typeof move === 'string') return { ...row, kind: `message.${move}`, body: progressBody(shown, move, timestamp) }
  return { ...row, kind: 'message.failed', body: failureBody(shown, move, timestamp) }
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

    setAddress: statements.update(
      'messages',
      { instance_id: 'text', id: 'text' },
      { address: 'text', content: 'blob' },
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
