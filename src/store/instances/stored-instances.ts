import { type RawBuilder, sql } from 'kysely'
import { currentState, type StoredConnectionState } from '../../domain/connection/connection.ts'
import { DEFAULT_ENDPOINT, type Webhook } from '../../domain/events/endpoint.ts'
import type { InstanceId } from '../../domain/ids.ts'
import type { Instance, InstanceKind } from '../../domain/instance.ts'
import { currentStateOf } from '../connections/current-state.ts'
import { endpointSecretPlace } from '../encryption/sealing.ts'
import { CLEARED } from '../endpoints/stored-endpoints.ts'
import type { Transaction } from '../engine/backend.ts'
import type { Core } from '../engine/core.ts'
import { nameAfter, seqBefore, toPage } from '../engine/cursor.ts'
import { differs, oneByOne } from '../engine/operation.ts'
import type { Page, PageRequest } from '../engine/page.ts'
import { searchPatterns } from '../engine/search-patterns.ts'
import type { Lease } from '../leases/leases.ts'
import { Erasure } from './erasure.ts'
import { findHolding } from './holding.ts'
import { insertInstance } from './insert-instance.ts'
import type { Held, InstanceFilter, Instances, NewInstance } from './instances.ts'
import { Traffic } from './traffic.ts'

const NEVER_LINKED = 'No WhatsApp number is linked yet.'

interface InstanceRow {
  seq: number
  id: string
  name: string
  kind: InstanceKind
  created_at: number
  state: StoredConnectionState
  reason: string
  phone: string | null
  last_connected_at: number | null
  lease_until: number
  now: number
}

export class StoredInstances implements Instances {
  readonly #core: Core
  readonly #forgetToken: (id: InstanceId) => void
  readonly #erasure: Erasure
  readonly #traffic: Traffic
  readonly #operations

  /** @param forgetToken called before a change of a token is confirmed to the caller */
  constructor(core: Core, forgetToken: (id: InstanceId) => void) {
    this.#core = core
    this.#forgetToken = forgetToken
    this.#erasure = new Erasure(core)
    this.#traffic = new Traffic(core)
    this.#operations = operations(core)
  }

  async create(instance: NewInstance, now: number): Promise<Instance> {
    await this.#core.write(this.#operations.create, { ...instance, now })
    this.#core.hints.publish('goal', instance.id)
    this.#core.hints.publish('free', instance.id)
    const { id, name, kind } = instance
    return { id, name, kind, state: 'unlinked', reason: NEVER_LINKED, phone: null, createdAt: now }
  }

  async find(id: InstanceId): Promise<Instance | null> {
    const [row] = await this.#core.reader.query(this.#select().where('instances.id', '=', id))
    return row === undefined ? null : toInstance(row)
  }

  async list(page: PageRequest, filter: InstanceFilter = {}): Promise<Page<Instance>> {
    const { search, state, ids, sort = 'newest', trafficSince = 0 } = filter
    const { reader, statements } = this.#core
    const folded = statements.dialect.fold(sql.ref('instances.name'))
    let query = this.#select().select(folded.as('folded'))
    // SQL does not allow an empty list. No instance has an empty ID.
    if (ids) query = query.where('instances.id', 'in', [...ids, ''])
    if (search !== undefined) query = query.where(matches(search, folded))
    if (state !== undefined) query = query.where(currentStateOf('connections', 'leases', statements.now), '=', state)
    if (sort === 'traffic') return this.#listByTraffic(page, await reader.query(query), trafficSince)
    if (sort === 'newest') {
      query = query.where('instances.seq', '<', seqBefore(page)).orderBy('instances.seq', 'desc')
    } else {
      const after = nameAfter(page)
      if (after) query = query.where(sql<boolean>`(${folded}, instances.seq) > (${after.name}, ${after.seq})`)
      query = query.orderBy(folded).orderBy('instances.seq')
    }
    const rows = await reader.query(query.limit(page.limit + 1))
    const positionOf = (row: (typeof rows)[number]) => (sort === 'newest' ? row.seq : `${row.seq} ${row.folded}`)
    return toPage(rows, page.limit, positionOf, toInstance)
  }

  async #listByTraffic(page: PageRequest, rows: readonly InstanceRow[], since: number): Promise<Page<Instance>> {
    const after = nameAfter(page)
    const counts = await this.#traffic.since(since)
    const trafficOf = (row: InstanceRow) => counts.get(row.id) ?? 0
    const below = (row: InstanceRow, traffic: number, seq: number) =>
      trafficOf(row) === traffic ? row.seq < seq : trafficOf(row) < traffic
    const listed = rows
      .filter(row => after === null || below(row, Number(after.name), after.seq))
      .toSorted((one, other) => (below(one, trafficOf(other), other.seq) ? 1 : -1))
      .slice(0, page.limit + 1)
    return toPage(listed, page.limit, row => `${row.seq} ${trafficOf(row)}`, toInstance)
  }

  listHolding(held: Held, ids: readonly InstanceId[] | null = null): Promise<InstanceId[]> {
    return findHolding(this.#core, held, ids)
  }

  async rename(id: InstanceId, name: string): Promise<Instance | null> {
    if (!(await this.#core.write(this.#operations.change, { id, set: { name } }))) return null
    this.#core.hints.publish('connection', id)
    return this.find(id)
  }

  async replaceToken(id: InstanceId, tokenDigest: Uint8Array): Promise<boolean> {
    const replaced = this.#core.write(this.#operations.change, { id, set: { token_digest: tokenDigest } })
    const row = await replaced.finally(() => this.#forgetToken(id))
    if (row !== null) this.#core.hints.publish('access', id)
    return row !== null
  }

  async delete(id: InstanceId, now: number): Promise<boolean> {
    const deleted = await this.#core.write(this.#operations.delete, { id, now }).finally(() => this.#forgetToken(id))
    if (deleted) {
      this.#core.hints.publish('goal', id)
      this.#core.hints.publish('connection', id)
      this.#core.hints.publish('access', id)
    }
    return deleted
  }

  erase(lease: Lease): Promise<boolean> {
    return this.#erasure.erase(lease)
  }

  async findWebhook(id: InstanceId): Promise<Webhook | null> {
    const { db } = this.#core.statements
    const [row] = await this.#core.reader.query(
      db
        .selectFrom('instances')
        .select(['id', 'webhook_url', 'webhook_secret'])
        .where('id', '=', id)
        .where('deleted_at', 'is', null),
    )
    return row === undefined ? null : this.#toWebhook(row)
  }

  async setWebhookUrl(id: InstanceId, url: string | null): Promise<Webhook | null> {
    const set = url === null ? CLEARED : { webhook_url: url }
    const outcome = await this.#core.write(this.#operations.change, { id, set })
    return this.#webhookAfter(outcome?.row ?? null)
  }

  #select() {
    const { db, now } = this.#core.statements
    return db
      .selectFrom('instances')
      .innerJoin('connections', 'connections.instance_id', 'instances.id')
      .innerJoin('leases', 'leases.instance_id', 'instances.id')
      .select([
        'instances.seq',
        'instances.id',
        'instances.name',
        'instances.kind',
        'instances.created_at',
        'connections.state',
        'connections.reason',
        'connections.phone',
        'connections.last_connected_at',
        'leases.lease_until',
        now.as('now'),
      ])
      .where('instances.deleted_at', 'is', null)
  }

  #webhookAfter(row: WebhookRow | null): Webhook | null {
    if (row === null) return null
    this.#core.hints.publish('webhook', row.id)
    return this.#toWebhook(row)
  }

  #toWebhook(row: WebhookRow): Webhook {
    return { instanceId: row.id, url: row.webhook_url, secret: openSecret(this.#core, row.id, row.webhook_secret) }
  }
}

type InstanceChanges = { name?: string; token_digest?: Uint8Array } | typeof CLEARED | { webhook_url: string }

interface WebhookRow {
  id: string
  webhook_url: string | null
  webhook_secret: Uint8Array
}

function operations(core: Core) {
  const { db, dialect, now } = core.statements

  return {
    create: oneByOne(
      'instances.create',
      (input: NewInstance & { now: number }) => input.id,
      (tx, { now: createdAt, ...instance }) =>
        insertInstance(
          tx,
          core,
          { ...instance, state: 'unlinked', cause: 'never_linked', reason: NEVER_LINKED },
          createdAt,
        ),
    ),

    change: oneByOne(
      'instances.change',
      (input: { id: InstanceId; set: InstanceChanges }) => input.id,
      async (tx, { id, set }): Promise<{ row: WebhookRow; isChanged: boolean } | null> => {
        const present = db.selectFrom('instances').selectAll().where('id', '=', id).where('deleted_at', 'is', null)
        const [row] = await tx.query(core.statements.locking(present, 'no key update', 'instances'))
        if (row === undefined) return null
        const isChanged = differs(row, set)
        if (isChanged) await tx.query(db.updateTable('instances').set(set).where('id', '=', id))
        return { row: { ...row, ...set }, isChanged }
      },
      outcome => outcome?.isChanged === true,
    ),

    delete: oneByOne(
      'instances.delete',
      (input: { id: InstanceId; now: number }) => input.id,
      async (tx: Transaction, { id, now: deletedAt }): Promise<boolean> => {
        // These locks wait for running writes and block later ones until the commit.
        const lock = dialect.lock(sql`for update`)
        await tx.query(db.selectFrom('leases').select('epoch').where('instance_id', '=', id).modifyEnd(lock))
        await tx.query(db.selectFrom('instances').select('id').where('id', '=', id).modifyEnd(lock))
        const [marked] = await tx.query(
          db
            .updateTable('instances')
            .set({ deleted_at: deletedAt, token_digest: null })
            .where('id', '=', id)
            .where('deleted_at', 'is', null)
            .returning('id'),
        )
        if (marked === undefined) return false
        await tx.query(
          db
            .updateTable('leases')
            .set(eb => ({ owner: null, epoch: eb('epoch', '+', 1), lease_until: now }))
            .where('instance_id', '=', id),
        )
        await tx.query(
          db
            .updateTable('endpoints')
            .set({ deleted_at: deletedAt })
            .where('instance_id', '=', id)
            .where('deleted_at', 'is', null),
        )
        await tx.query(db.deleteFrom('credentials').where('instance_id', '=', id))
        await tx.query(db.deleteFrom('api_keys').where('instance_id', '=', id))
        return true
      },
    ),
  }
}

function openSecret(core: Core, id: InstanceId, sealed: Uint8Array): string {
  return core.sealing.open(id, endpointSecretPlace(id, DEFAULT_ENDPOINT), sealed).toString()
}

/** Searches name, ID and number, without regard to case and accents. A number may contain spaces and punctuation. */
function matches(search: string, folded: RawBuilder<string>) {
  const { words, number } = searchPatterns(search)
  return sql<boolean>`(${folded} like ${words} escape '\\'
    or instances.id like ${words} escape '\\' or connections.phone like ${number} escape '\\')`
}

function toInstance(row: InstanceRow): Instance {
  const { id, name, kind, reason, phone } = row
  const stored = { state: row.state, lastConnectedAt: row.last_connected_at }
  const state = currentState(stored, row.lease_until > row.now, row.now)
  return { id, name, kind, state, reason, phone, createdAt: row.created_at }
}
