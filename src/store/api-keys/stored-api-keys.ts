import { sql } from 'kysely'
import { MAX_API_KEYS, type Scope } from '../../domain/access.ts'
import type { InstanceId } from '../../domain/ids.ts'
import type { Core } from '../engine/core.ts'
import { oneByOne } from '../engine/operation.ts'
import type { ApiKeysTable } from '../engine/schema/api-keys.ts'
import type { ApiKey, ApiKeys, NewApiKey } from './api-keys.ts'

export class StoredApiKeys implements ApiKeys {
  readonly #core: Core
  readonly #forget: (id: InstanceId) => void
  readonly #operations

  /** @param forget called before a revocation is confirmed to the caller */
  constructor(core: Core, forget: (id: InstanceId) => void) {
    this.#core = core
    this.#forget = forget
    this.#operations = operations(core)
  }

  async create(key: NewApiKey, now: number): Promise<ApiKey | 'full' | null> {
    const outcome = await this.#core.write(this.#operations.create, { key, now })
    if (outcome !== 'created') return outcome
    const { instanceId: _instance, digest: _digest, ...shown } = key
    return { ...shown, createdAt: now, lastUsedAt: null }
  }

  async list(instanceId: InstanceId): Promise<ApiKey[] | null> {
    const { db } = this.#core.statements
    const rows = await this.#core.reader.query(
      db
        .selectFrom('instances')
        .leftJoin('api_keys', 'api_keys.instance_id', 'instances.id')
        .select(['api_keys.id', 'api_keys.name', 'prefix', 'scopes', 'api_keys.created_at', 'expires_at'])
        .select('last_used_at')
        .where('instances.id', '=', instanceId)
        .where('instances.deleted_at', 'is', null)
        .orderBy('api_keys.created_at', 'desc')
        .orderBy('api_keys.id'),
    )
    return rows.length === 0 ? null : rows.filter(row => row.id !== null).map(row => toKey(row as ApiKeysTable))
  }

  async revoke(instanceId: InstanceId, id: string): Promise<boolean> {
    const revoked = this.#core.write(this.#operations.revoke, { instanceId, id })
    const found = await revoked.finally(() => this.#forget(instanceId))
    if (found) this.#core.hints.publish('access', instanceId)
    return found
  }
}

function operations({ statements }: Core) {
  const { db, dialect } = statements
  return {
    create: oneByOne(
      'apiKeys.create',
      ({ key }: { key: NewApiKey; now: number }) => key.instanceId,
      async (tx, { key, now }): Promise<'created' | 'full' | null> => {
        const { id, instanceId, name, digest, prefix, scopes, expiresAt } = key
        // The lock keeps concurrent calls from exceeding the limit, and waits for a deletion.
        const lock = dialect.lock(sql`for update`)
        const [instance] = await tx.query(
          db
            .selectFrom('instances')
            .select('id')
            .where('id', '=', instanceId)
            .where('deleted_at', 'is', null)
            .modifyEnd(lock),
        )
        if (instance === undefined) return null
        const known = await tx.query(db.selectFrom('api_keys').select('id').where('instance_id', '=', instanceId))
        if (known.length >= MAX_API_KEYS) return 'full'
        await tx.query(
          db.insertInto('api_keys').values({
            instance_id: instanceId,
            id,
            name,
            digest,
            prefix,
            scopes: scopes.join(' '),
            created_at: now,
            expires_at: expiresAt,
          }),
        )
        return 'created'
      },
      outcome => outcome === 'created',
    ),

    revoke: oneByOne(
      'apiKeys.revoke',
      ({ instanceId }: { instanceId: InstanceId; id: string }) => instanceId,
      async (tx, { instanceId, id }) => {
        const rows = await tx.query(
          db.deleteFrom('api_keys').where('instance_id', '=', instanceId).where('id', '=', id).returning('id'),
        )
        return rows.length > 0
      },
    ),
  }
}

export function parseScopes(stored: string): Scope[] {
  return stored.split(' ').filter(scope => scope !== '') as Scope[]
}

function toKey(row: ApiKeysTable): ApiKey {
  return {
    id: row.id,
    name: row.name,
    prefix: row.prefix,
    scopes: parseScopes(row.scopes),
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    lastUsedAt: row.last_used_at,
  }
}
