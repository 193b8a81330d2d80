import type { ConnectionCause, ConnectionGoal, StoredConnectionState } from '../../domain/connection/connection.ts'
import { DEFAULT_ENDPOINT } from '../../domain/events/endpoint.ts'
import type { InstanceKind } from '../../domain/instance.ts'
import { endpointSecretPlace } from '../encryption/sealing.ts'
import type { Transaction } from '../engine/backend.ts'
import type { Core } from '../engine/core.ts'

interface InstanceToInsert {
  id: string
  name: string
  kind: InstanceKind
  tokenDigest: Uint8Array
  webhookSecret: string
  webhookUrl?: string | null
  goal: ConnectionGoal
  state: StoredConnectionState
  cause: ConnectionCause
  reason: string
  phone?: string
}

/** Inserts the rows that every instance has. */
export async function insertInstance(
  tx: Transaction,
  { statements, sealing }: Core,
  instance: InstanceToInsert,
  now: number,
): Promise<void> {
  const { db, now: databaseNow } = statements
  const { id, name, kind, tokenDigest, webhookSecret, webhookUrl = null } = instance
  const { goal, state, cause, reason, phone = null } = instance
  await tx.query(db.insertInto('leases').values({ instance_id: id, epoch: 0, lease_until: databaseNow }))
  await tx.query(
    db.insertInto('instances').values({
      id,
      name,
      kind,
      token_digest: tokenDigest,
      webhook_url: webhookUrl,
      webhook_secret: sealing.seal(id, endpointSecretPlace(id, DEFAULT_ENDPOINT), Buffer.from(webhookSecret)),
      created_at: now,
    }),
  )
  const connection = { instance_id: id, state, reason, cause, since: now, goal, goal_version: 0, phone }
  await tx.query(db.insertInto('connections').values(connection))
}
