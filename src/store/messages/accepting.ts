import { sql } from 'kysely'
import { acceptsMessages, currentState } from '../../domain/connection.ts'
import type { MessageState } from '../../domain/message.ts'
import type { Transaction } from '../engine/backend.ts'
import type { Core } from '../engine/core.ts'
import type { Operation } from '../engine/operation.ts'
import type { Statements } from '../engine/statement.ts'
import type { AcceptOutcome, NewMessage } from './messages.ts'

/** How long an idempotency key is valid (contract §3). */
const KEY_MS = 24 * 60 * 60_000

type Acceptance = { message: NewMessage; now: number }
type KeyedMessage = NewMessage & { idempotency: { key: string; digest: Uint8Array } }

/** Checks the instance, the idempotency key and the connection, in this order, then inserts. */
export function acceptOperation({ statements }: Core): Operation<Acceptance, AcceptOutcome> {
  const queries = prepare(statements)
  return {
    name: 'messages.accept',
    instanceId: ({ message }) => message.instanceId,
    keys: ({ message }) => (message.idempotency === undefined ? [] : [message.idempotency.key]),
    async run(tx, inputs) {
      const messages = inputs.map(input => input.message)
      const acceptance = await findAcceptance(tx, messages)
      const keyed = messages.filter(isKeyed)
      const known = await findKnownKeys(tx, keyed)
      const refusals = messages.map((message): AcceptOutcome | null => {
        const accepts = acceptance.get(message.instanceId)
        if (accepts === undefined) return { kind: 'no_instance' }
        const repeat = isKeyed(message) ? known.get(keyId(message)) : undefined
        if (repeat !== undefined && isKeyed(message)) return replay(message, repeat)
        return accepts ? null : { kind: 'not_connected' }
      })
      const accepted = inputs.filter((_, index) => refusals[index] === null)
      const taken = await takeKeys(tx, accepted.map(({ message }) => message).filter(isKeyed))
      const inserted = accepted.filter(({ message }) => !isKeyed(message) || !taken.has(keyId(message)))
      insert(tx, inserted)
      return messages.map((message, index): AcceptOutcome => {
        const winner = isKeyed(message) ? taken.get(keyId(message)) : undefined
        if (refusals[index] !== null) return refusals[index]!
        return winner !== undefined && isKeyed(message) ? replay(message, winner) : { kind: 'accepted', id: message.id }
      })
    },
  }

  /** Whether each existing instance accepts messages now. */
  async function findAcceptance(tx: Transaction, messages: readonly NewMessage[]) {
    const ids = new Set(messages.map(message => message.instanceId))
    const rows = await tx.each(
      queries.findConnection,
      [...ids].map(instance_id => ({ instance_id })),
    )
    return new Map(
      rows.map(row => {
        const stored = { state: row.state, lastConnectedAt: row.last_connected_at }
        const state = currentState(stored, row.lease_until > row.now, row.now)
        return [row.id, acceptsMessages(state)]
      }),
    )
  }

  async function findKnownKeys(tx: Transaction, messages: readonly KeyedMessage[]) {
    if (messages.length === 0) return new Map<string, KnownKey>()
    const rows = await tx.each(
      queries.findKey,
      messages.map(({ instanceId, idempotency }) => ({ instance_id: instanceId, key: idempotency.key })),
    )
    return new Map(rows.map(row => [`${row.instance_id}/${row.key}`, row]))
  }

  /** @returns the keys that another node took since `findKnownKeys` */
  async function takeKeys(tx: Transaction, messages: readonly KeyedMessage[]) {
    if (messages.length === 0) return new Map<string, KnownKey>()
    const rows = messages.map(({ instanceId, id, idempotency }) => ({
      instance_id: instanceId,
      key: idempotency.key,
      digest: idempotency.digest,
      message_id: id,
    }))
    // All nodes lock rows in the same order, which prevents deadlocks.
    rows.sort((a, b) => (a.instance_id + a.key < b.instance_id + b.key ? -1 : 1))
    const got = await tx.each(queries.takeKey, rows)
    const ours = new Set(got.map(row => `${row.instance_id}/${row.key}`))
    return findKnownKeys(
      tx,
      messages.filter(message => !ours.has(keyId(message))),
    )
  }

  function insert(tx: Transaction, accepted: readonly Acceptance[]): void {
    if (accepted.length === 0) return
    const rows = accepted.map(({ message, now }) => ({
      instance_id: message.instanceId,
      id: message.id,
      recipient: message.to,
      text: message.text,
      whatsapp_id: message.whatsappId,
      created_at: now,
    }))
    tx.post(queries.insertMessage, rows)
  }
}

interface KnownKey {
  instance_id: string
  key: string
  digest: Uint8Array
  message_id: string
}

function isKeyed(message: NewMessage): message is KeyedMessage {
  return message.idempotency !== undefined
}

function keyId({ instanceId, idempotency }: KeyedMessage): string {
  return `${instanceId}/${idempotency.key}`
}

function replay(message: KeyedMessage, known: KnownKey): AcceptOutcome {
  const same = Buffer.compare(known.digest, message.idempotency.digest) === 0
  return same ? { kind: 'replayed', id: known.message_id } : { kind: 'key_reused' }
}

function prepare(statements: Statements) {
  return {
    findConnection: statements.rows({ instance_id: 'text' }, db =>
      statements.locking(
        db
          .selectFrom('input')
          .innerJoin('instances', 'instances.id', 'input.instance_id')
          .innerJoin('connections', 'connections.instance_id', 'input.instance_id')
          .innerJoin('leases', 'leases.instance_id', 'input.instance_id')
          .select(['instances.id', 'connections.state', 'connections.last_connected_at', 'leases.lease_until'])
          .select(statements.now.as('now'))
          .where('instances.deleted_at', 'is', null),
        // Blocks a deletion until the commit.
        'key share',
        'instances',
      ),
    ),

    findKey: statements.find(
      'idempotency_keys',
      { instance_id: 'text', key: 'text' },
      ['instance_id', 'key', 'digest', 'message_id'],
      { where: sql`idempotency_keys.expires_at > ${statements.now}` },
    ),

    takeKey: statements.insert(
      'idempotency_keys',
      { instance_id: 'text', key: 'text', digest: 'blob', message_id: 'text' },
      {
        fixed: { expires_at: sql`${statements.now} + ${sql.lit(KEY_MS)}` },
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
                .where('idempotency_keys.expires_at', '<=', statements.now),
            )
            .returning(['instance_id', 'key']),
      },
    ),

    insertMessage: statements.insert(
      'messages',
      {
        instance_id: 'text',
        id: 'text',
        recipient: 'text',
        text: 'text',
        whatsapp_id: 'text',
        created_at: 'integer',
      },
      { fixed: { state: sql.lit<MessageState>('queued') } },
    ),
  }
}
