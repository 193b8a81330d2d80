import { randomInt } from 'node:crypto'
import { sql } from 'kysely'
import {
  acceptsMessages,
  acceptsScheduled,
  type ConnectionState,
  currentState,
} from '../../domain/connection/connection.ts'
import { type InstanceId, isCommandId, type MessageId } from '../../domain/ids.ts'
import type { MessageState } from '../../domain/message.ts'
import type { Transaction } from '../engine/backend.ts'
import type { Core } from '../engine/core.ts'
import type { Operation } from '../engine/operation.ts'
import type { RowOf, Statements } from '../engine/statement.ts'
import { ExtrasResolver, type ResolvedExtras } from './extras.ts'
import { KEY_MS, outlivesExpiry } from './idempotency-keys.ts'
import { type FileColumns, fetchInserter, fileChecker } from './message-files.ts'
import type { AcceptOutcome, NewMessage } from './messages.ts'

const MESSAGE = {
  instance_id: 'text',
  id: 'text',
  recipient: 'text',
  text: 'text',
  whatsapp_id: 'text',
  created_at: 'integer',
  media_id: 'text?',
  file: 'text?',
  extras: 'text?',
} as const

/** For a separate statement, so that messages without a trace context have no extra cost. */
const TRACED = { ...MESSAGE, traceparent: 'text?' } as const
const SCHEDULED = { ...TRACED, seq: 'integer', not_before: 'integer' } as const

const NO_FILE = { media_id: null, file: null }
/** The number of a scheduled message is below 0, so that nothing sends the message before it is due. */
const MAX_SCHEDULED_SEQ = 2 ** 47

/** The deletion of a message that was never written to a socket. */
export interface Cancellation {
  instanceId: InstanceId
  command: MessageId
  message: MessageId
  now: number
}

type Cancel = (tx: Transaction, cancellations: readonly Cancellation[]) => Promise<void>

interface Acceptance {
  message: NewMessage
  now: number
}

/** A key to take: the input of `takeKey`. */
interface Key {
  instance_id: InstanceId
  key: string
  digest: Uint8Array
  message_id: MessageId
  /** Not a time, but the milliseconds to add to 24 h: the 24 h of a scheduled message begin at its time or later (see `outlivesExpiry`). */
  expires_at: number
}

/** By `keyId`. */
type Keys = ReadonlyMap<string, Omit<Key, 'expires_at'>>
const NO_KEYS: Keys = new Map()

/**
 * Checks the instance, the idempotency key and the connection, in this order, then inserts.
 * @param cancel ends a message that was never written to a socket, and the command that deletes it
 */
export function acceptOperation({ statements }: Core, cancel: Cancel): Operation<Acceptance, AcceptOutcome> {
  const queries = prepare(statements)
  const checkFiles = fileChecker(statements)
  const insert = messageInserter(statements, queries, cancel)
  const resolver = new ExtrasResolver(statements)
  return {
    name: 'messages.accept',
    isIndependent: true,
    connection: 'calls',
    changes: outcome => outcome.kind === 'accepted',
    steps: ({ message }, outcome) =>
      outcome.kind === 'accepted' && !isCommandId(message.id) ? [{ step: 'accepted' }] : [],
    instanceId: ({ message }) => message.instanceId,
    // Two deletions of one message never share a commit: the second one must see what the first one did.
    keys: ({ message: { idempotency, extras } }) => [
      ...(idempotency === undefined ? [] : [idempotency.key]),
      ...(extras?.command?.kind === 'delete' ? [`delete:${extras.command.targetId}`] : []),
    ],
    async run(tx, inputs) {
      const connections = await findConnections(tx, queries, inputs)
      const keys = keysOf(inputs)
      const known = keys.length === 0 ? NO_KEYS : await findKeys(tx, queries, keys)
      const outcomes = new Map<Acceptance, AcceptOutcome>()
      const accepted: Acceptance[] = []
      const withFile: NewMessage[] = []
      const withExtras: Acceptance[] = []
      for (const input of inputs) {
        const { message } = input
        const outcome = decide(input, connections.get(message.instanceId), known)
        outcomes.set(input, outcome)
        if (outcome.kind !== 'accepted') continue
        accepted.push(input)
        if (message.file ?? message.extras?.preview?.image) withFile.push(message)
        if (message.extras !== undefined || message.notBefore !== undefined) withExtras.push(input)
      }
      const files = withFile.length === 0 ? undefined : await checkFiles(tx, withFile)
      const extras = withExtras.length === 0 ? undefined : await resolver.resolve(tx, withExtras)
      const sendable: Acceptance[] = []
      const refused: Acceptance[] = []
      for (const input of accepted) {
        const { message } = input
        const file = files?.get(message)
        const found = extras?.get(message)
        const { state } = connections.get(message.instanceId)!
        if (file !== undefined && 'kind' in file) outcomes.set(input, file)
        else if (found !== undefined && 'kind' in found) outcomes.set(input, found)
        else if (message.extras?.command && needsConnection(found!) && !acceptsMessages(state))
          outcomes.set(input, { kind: 'not_connected' })
        if (outcomes.get(input)!.kind === 'accepted') sendable.push(input)
        else refused.push(input)
      }
      if (refused.length > 0) await findRepeats(tx, queries, refused, outcomes)
      // Sendable messages were not refused, so their files are found and their extras are resolved.
      const columns = files as ReadonlyMap<NewMessage, FileColumns> | undefined
      const resolved = extras as ReadonlyMap<NewMessage, ResolvedExtras> | undefined
      const newKeys = keysOf(sendable, resolved)
      const taken = newKeys.length === 0 ? NO_KEYS : await takeKeys(tx, queries, newKeys)
      const toInsert: Acceptance[] = []
      for (const input of sendable) {
        const repeated = repeatOf(input.message, taken)
        if (repeated === undefined) toInsert.push(input)
        else outcomes.set(input, repeated)
      }
      await insert(tx, toInsert, columns, resolved)
      return [...outcomes.values()]
    },
  }
}

/** Inserts accepted messages, with the rows of files to fetch, and applies the cancellations among them. */
function messageInserter(statements: Statements, queries: Queries, cancel: Cancel) {
  const insertFetches = fetchInserter(statements)
  return async (
    tx: Transaction,
    accepted: readonly Acceptance[],
    files: ReadonlyMap<NewMessage, FileColumns> | undefined,
    resolved: ReadonlyMap<NewMessage, ResolvedExtras> | undefined,
  ): Promise<void> => {
    const rows: RowOf<typeof TRACED>[] = []
    const scheduled: RowOf<typeof SCHEDULED>[] = []
    const cancellations: Cancellation[] = []
    const fetches: Parameters<typeof insertFetches>[1][number][] = []
    for (const { message, now } of accepted) {
      const { id, instanceId: instance_id, text, whatsappId: whatsapp_id, notBefore = 0 } = message
      const found = resolved?.get(message)
      const row = {
        instance_id,
        id,
        recipient: found?.to ?? message.to,
        text,
        whatsapp_id,
        created_at: now,
        ...(files?.get(message) ?? NO_FILE),
        extras: found?.extras ? JSON.stringify(found.extras) : null,
        traceparent: message.traceparent ?? null,
      }
      const not_before = found?.notBefore ?? (notBefore > now ? notBefore : null)
      if (message.file?.url !== undefined) fetches.push({ instanceId: instance_id, file: message.file, now })
      if (not_before === null) rows.push(row)
      else scheduled.push({ ...row, seq: -randomInt(1, MAX_SCHEDULED_SEQ), not_before })
      const cancelled = found?.cancelled ?? null
      if (cancelled !== null) cancellations.push({ instanceId: instance_id, command: id, message: cancelled, now })
    }
    if (fetches.length > 0) insertFetches(tx, fetches)
    if (rows.some(row => row.traceparent !== null)) tx.post(queries.insertTraced, rows)
    else if (rows.length > 0) tx.post(queries.insertMessage, rows)
    if (scheduled.length > 0) tx.post(queries.insertScheduled, scheduled)
    if (cancellations.length > 0) await cancel(tx, cancellations)
  }
}

interface Connection {
  state: ConnectionState
  /** The linked number. */
  phone: string | null
}

/** The connections of the instances that exist. */
async function findConnections(
  tx: Transaction,
  queries: Queries,
  inputs: readonly Acceptance[],
): Promise<Map<InstanceId, Connection>> {
  const asked = new Map<InstanceId, { instance_id: InstanceId }>()
  for (const { message } of inputs) asked.set(message.instanceId, { instance_id: message.instanceId })
  const connections = new Map<InstanceId, Connection>()
  for (const row of await tx.each(queries.findConnection, [...asked.values()])) {
    const stored = { state: row.state, lastConnectedAt: row.last_connected_at }
    connections.set(row.id, { state: currentState(stored, row.lease_until > row.now, row.now), phone: row.phone })
  }
  return connections
}

/**
 * Whether a command needs the connection now. The deletion of a message that was never written to a socket and a command on
 * a scheduled message do not need it.
 */
function needsConnection({ cancelled, notBefore }: ResolvedExtras): boolean {
  return cancelled === null && notBefore === null
}

/** The stored rows of these keys. */
async function findKeys(tx: Transaction, queries: Queries, keys: readonly Key[]): Promise<Keys> {
  const rows = await tx.each(queries.findKey, keys)
  return new Map(rows.map(row => [keyId(row.instance_id, row.key), row]))
}

/**
 * Looks for the keys of refused calls again. A call whose key is found gets the outcome of a repeated call. The reason for a refusal may be a call with the same key on another node, for example
 * one that has cancelled the same message.
 */
async function findRepeats(
  tx: Transaction,
  queries: Queries,
  refused: readonly Acceptance[],
  outcomes: Map<Acceptance, AcceptOutcome>,
): Promise<void> {
  const keys = keysOf(refused)
  if (keys.length === 0) return
  const known = await findKeys(tx, queries, keys)
  for (const input of refused) {
    const repeated = repeatOf(input.message, known)
    if (repeated !== undefined) outcomes.set(input, repeated)
  }
}

/** @returns the keys that other calls inserted since `findKeys` */
async function takeKeys(tx: Transaction, queries: Queries, keys: readonly Key[]): Promise<Keys> {
  // All nodes lock rows in the same order, which prevents deadlocks.
  const sorted = keys.toSorted((a, b) => (a.instance_id + a.key < b.instance_id + b.key ? -1 : 1))
  const ours = new Set((await tx.each(queries.takeKey, sorted)).map(row => keyId(row.instance_id, row.key)))
  const others = keys.filter(({ instance_id, key }) => !ours.has(keyId(instance_id, key)))
  return others.length === 0 ? NO_KEYS : findKeys(tx, queries, others)
}

/**
 * Decides without the references. A command only needs a linked instance here, because not every command needs the
 * connection.
 * @param connection undefined if there is no such instance
 */
function decide({ message, now }: Acceptance, connection: Connection | undefined, known: Keys): AcceptOutcome {
  const { id, extras, notBefore = 0 } = message
  if (connection === undefined) return { kind: 'no_instance' }
  const repeated = repeatOf(message, known)
  if (repeated !== undefined) return repeated
  const { state, phone } = connection
  const mayWait = notBefore > now || extras?.command !== undefined
  const accepts = mayWait ? acceptsScheduled(state, phone) : acceptsMessages(state)
  return accepts ? { kind: 'accepted', id } : { kind: 'not_connected' }
}

/** The outcome of a call whose idempotency key is known; undefined if it is not. */
function repeatOf({ instanceId, idempotency }: NewMessage, known: Keys): AcceptOutcome | undefined {
  const first = idempotency && known.get(keyId(instanceId, idempotency.key))
  if (!first) return undefined
  const same = Buffer.compare(first.digest, idempotency.digest) === 0
  return same ? { kind: 'replayed', id: first.message_id } : { kind: 'key_reused' }
}

/** @param resolved if given, a command on a scheduled message waits until that message is due */
function keysOf(inputs: readonly Acceptance[], resolved?: ReadonlyMap<NewMessage, ResolvedExtras>): Key[] {
  const keys: Key[] = []
  for (const { message, now } of inputs) {
    const { id: message_id, instanceId: instance_id, idempotency, notBefore = 0 } = message
    const waits = Math.max(0, (resolved?.get(message)?.notBefore ?? notBefore) - now)
    if (idempotency) keys.push({ instance_id, ...idempotency, message_id, expires_at: waits })
  }
  return keys
}

function keyId(instanceId: InstanceId, key: string): string {
  return `${instanceId}/${key}`
}

type Queries = ReturnType<typeof prepare>

function prepare(statements: Statements) {
  return {
    findConnection: statements.rows({ instance_id: 'text' }, db =>
      statements.locking(
        db
          .selectFrom('input')
          .innerJoin('instances', 'instances.id', 'input.instance_id')
          .innerJoin('connections', 'connections.instance_id', 'input.instance_id')
          .innerJoin('leases', 'leases.instance_id', 'input.instance_id')
          .select(['instances.id', 'connections.state', 'connections.phone', 'connections.last_connected_at'])
          .select('leases.lease_until')
          .select(statements.now.as('now'))
          .where('instances.deleted_at', 'is', null),
        // Blocks a deletion of the instance until the commit.
        'key share',
        'instances',
      ),
    ),

    findKey: statements.find(
      'idempotency_keys',
      { instance_id: 'text', key: 'text' },
      ['instance_id', 'key', 'digest', 'message_id'],
      { where: sql`(idempotency_keys.expires_at > ${statements.now} or ${outlivesExpiry(statements)})` },
    ),

    takeKey: statements.insert(
      'idempotency_keys',
      { instance_id: 'text', key: 'text', digest: 'blob', message_id: 'text', expires_at: 'integer' },
      {
        // `input.expires_at` is the time beyond `KEY_MS` (see `Key`).
        fixed: { expires_at: sql`${statements.now} + ${sql.lit(KEY_MS)} + input.expires_at` },
        finish: query =>
          query
            .onConflict(oc =>
              oc
                .columns(['instance_id', 'key'])
                .doUpdateSet(eb => ({
                  digest: eb.ref('excluded.digest'),
                  message_id: eb.ref('excluded.message_id'),
                  expires_at: eb.ref('excluded.expires_at'),
                }))
                .where('idempotency_keys.expires_at', '<=', statements.now)
                .where(sql<boolean>`not ${outlivesExpiry(statements)}`),
            )
            .returning(['instance_id', 'key']),
      },
    ),

    insertMessage: statements.insert('messages', MESSAGE, { fixed: { state: sql.lit<MessageState>('queued') } }),

    insertTraced: statements.insert('messages', TRACED, { fixed: { state: sql.lit<MessageState>('queued') } }),

    insertScheduled: statements.insert('messages', SCHEDULED, { fixed: { state: sql.lit<MessageState>('queued') } }),
  }
}
