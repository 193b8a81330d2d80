import { sql } from 'kysely'
import {
  DEFAULT_ENDPOINT,
  type Endpoint,
  isOperatorEndpoint,
  MAX_ENDPOINTS,
  PREVIOUS_SECRET_MS,
} from '../../domain/events/endpoint.ts'
import type { EndpointId, InstanceId } from '../../domain/ids.ts'
import { endpointSecretPlace, OPERATOR_SCOPE, operatorSecretPlace } from '../encryption/sealing.ts'
import type { Transaction } from '../engine/backend.ts'
import type { Core } from '../engine/core.ts'
import { differs, oneByOne } from '../engine/operation.ts'
import type { Statements } from '../engine/statement.ts'
import { eventsOf } from '../events/event-recorder.ts'
import { hasOldNodes } from '../leases/old-nodes.ts'
import type {
  ChangeOutcome,
  CreateOutcome,
  EndpointSettings,
  Endpoints,
  NewEndpoint,
  PostingState,
} from './endpoints.ts'
import { previousAt, rotate, type SecretColumns } from './previous-secrets.ts'
import { hasDeliveries } from './stored-operator-endpoints.ts'

interface EndpointRow extends SecretColumns {
  instance_id: string
  id: string
  url: string | null
  events: string | null
  active: number
  description: string | null
  created_at: number
  deleted_at: number | null
}

interface Named {
  instanceId: InstanceId
  id: EndpointId
}

export class StoredEndpoints implements Endpoints {
  readonly #core: Core
  readonly #operations
  readonly #findDefault
  readonly #findOther
  readonly #findOperator
  readonly #listOthers
  readonly #listPosting

  constructor(core: Core) {
    this.#core = core
    this.#operations = operations(core)
    const { statements } = core
    this.#findDefault = statements.one((p: Named) => selectDefault(statements).where('id', '=', p.instanceId))
    this.#findOther = statements.one((p: Named) =>
      selectOthers(statements).where('instance_id', '=', p.instanceId).where('id', '=', p.id),
    )
    this.#findOperator = statements.one((p: Named) => selectOperator(statements, p))
    this.#listOthers = statements.one((p: { instanceId: InstanceId }) =>
      selectOthers(statements).where('instance_id', '=', p.instanceId).where('deleted_at', 'is', null),
    )
    this.#listPosting = statements.one((p: { instanceId: InstanceId }) =>
      statements.db
        .selectFrom('endpoints')
        .select('id')
        .where('instance_id', '=', p.instanceId)
        .where(sql<boolean>`(deleted_at is null or ${HAS_DELIVERIES} or ${WAS_DELETED_WITH_INSTANCE})`)
        .unionAll(statements.db.selectFrom('operator_endpoints').select('id').where(hasDeliveries(p.instanceId))),
    )
  }

  async create(endpoint: NewEndpoint, now: number): Promise<CreateOutcome> {
    const { instanceId, id, secret, events, ...settings } = endpoint
    const row = {
      ...settings,
      instanceId,
      id,
      events: JSON.stringify(events),
      sealed: this.#seal(endpoint, secret),
      now,
    }
    const kind = await this.#core.write(this.#operations.create, row)
    if (kind !== 'created') return { kind }
    this.#core.hints.publish('webhook', instanceId)
    const { url, active, description } = settings
    const created = { instanceId, id, url, secret, events, active, description }
    return { kind, endpoint: { ...created, previousSecretUntil: null, createdAt: now } }
  }

  async list(instanceId: InstanceId): Promise<Endpoint[]> {
    const [defaults, others] = await Promise.all([
      this.#core.reader.run(this.#findDefault, { instanceId, id: DEFAULT_ENDPOINT }),
      this.#core.reader.run(this.#listOthers, { instanceId }),
    ])
    const present = defaults.filter(row => row.deleted_at === null && row.url !== null)
    others.sort((a, b) => a.created_at - b.created_at || (a.id < b.id ? -1 : 1))
    return [...present, ...others].map(row => this.#toEndpoint(row))
  }

  async find(instanceId: InstanceId, id: EndpointId): Promise<Endpoint | null> {
    const row = isOperatorEndpoint(id) ? undefined : await this.#find({ instanceId, id })
    return row === undefined || row.deleted_at !== null || row.url === null ? null : this.#toEndpoint(row)
  }

  async change(instanceId: InstanceId, id: EndpointId, changes: Partial<EndpointSettings>): Promise<ChangeOutcome> {
    const kind = await this.#core.write(this.#operations.change, { instanceId, id, changes })
    if (kind !== 'changed' && kind !== 'unchanged') return { kind }
    if (kind === 'changed') this.#core.hints.publish('webhook', instanceId)
    const endpoint = await this.find(instanceId, id)
    return endpoint === null ? { kind: 'no_endpoint' } : { kind: 'changed', endpoint }
  }

  async delete(instanceId: InstanceId, id: EndpointId, now: number): Promise<boolean> {
    const deleted = await this.#core.write(this.#operations.delete, { instanceId, id, now })
    if (deleted) this.#core.hints.publish('webhook', instanceId)
    return deleted
  }

  async replaceSecret(instanceId: InstanceId, id: EndpointId, secret: string, now: number): Promise<boolean> {
    const replaced = await this.#core.write(this.#operations.replaceSecret, { instanceId, id, secret, now })
    if (replaced) this.#core.hints.publish('webhook', instanceId)
    return replaced
  }

  async listPosting(instanceId: InstanceId): Promise<EndpointId[]> {
    return (await this.#core.reader.run(this.#listPosting, { instanceId })).map(({ id }) => id)
  }

  async findPosting(instanceId: InstanceId, id: EndpointId, now: number): Promise<PostingState | null> {
    const row = await this.#find({ instanceId, id })
    if (row === undefined) return null
    const { previous_secret, previous_secret_until } = row
    const previous = previousAt(now, previous_secret && this.#open(row, previous_secret), previous_secret_until)
    return {
      secrets: { current: this.#open(row, row.secret), previous: previous.map(({ secret }) => secret) },
      active: row.active === 1 || row.deleted_at !== null,
    }
  }

  async findSecretChangedAt(instanceId: InstanceId, id: EndpointId): Promise<number | null> {
    const row = await this.#find({ instanceId, id })
    return row?.previous_secret_until == null ? null : row.previous_secret_until - PREVIOUS_SECRET_MS
  }

  async #find(named: Named): Promise<EndpointRow | undefined> {
    const ofInstance = named.id === DEFAULT_ENDPOINT ? this.#findDefault : this.#findOther
    const [row] = await this.#core.reader.run(isOperatorEndpoint(named.id) ? this.#findOperator : ofInstance, named)
    return row
  }

  #toEndpoint(row: EndpointRow): Endpoint {
    return {
      instanceId: row.instance_id,
      id: row.id,
      url: row.url!,
      secret: this.#open(row, row.secret),
      previousSecretUntil: row.previous_secret_until,
      events: eventsOf(row.events),
      active: row.active === 1,
      description: row.description,
      createdAt: row.created_at,
    }
  }

  #seal({ instanceId, id }: Named, secret: string): Uint8Array {
    return this.#core.sealing.seal(instanceId, endpointSecretPlace(instanceId, id), Buffer.from(secret))
  }

  #open({ instance_id, id }: EndpointRow, sealed: Uint8Array): string {
    const [scope, place] = isOperatorEndpoint(id)
      ? [OPERATOR_SCOPE, operatorSecretPlace(id)]
      : [instance_id, endpointSecretPlace(instance_id, id)]
    return this.#core.sealing.open(scope, place, sealed).toString()
  }
}

/**
 * Whether the endpoint in a row of `endpoints` has an unfinished delivery. Blocked deliveries need no check, because
 * each of them waits for another unfinished delivery of its endpoint.
 */
export const HAS_DELIVERIES = sql<boolean>`(exists (select 1 from deliveries as d where d.readiness = 'first'
    and d.instance_id = endpoints.instance_id and d.endpoint_id = endpoints.id)
  or exists (select 1 from deliveries as d where d.readiness = 'retry'
    and d.instance_id = endpoints.instance_id and d.endpoint_id = endpoints.id))`

/** Whether the endpoint in a row of `endpoints` was deleted by the deletion of its instance. It still receives the instance's events. */
export const WAS_DELETED_WITH_INSTANCE = sql<boolean>`exists (select 1 from instances as i
  where i.id = endpoints.instance_id and i.deleted_at = endpoints.deleted_at)`

function selectDefault({ db }: Statements) {
  return db
    .selectFrom('instances')
    .select(['id as instance_id', sql<EndpointId>`${sql.lit(DEFAULT_ENDPOINT)}`.as('id'), 'webhook_url as url'])
    .select(['webhook_secret as secret', 'previous_secret', 'previous_secret_until', 'webhook_events as events'])
    .select(['webhook_active as active', 'webhook_description as description', 'created_at', 'deleted_at'])
}

function selectOthers({ db }: Statements) {
  return db
    .selectFrom('endpoints')
    .select(['instance_id', 'id', 'url', 'secret', 'previous_secret', 'previous_secret_until', 'events'])
    .select(['active', 'description', 'created_at', 'deleted_at'])
}

/** The endpoint counts as deleted if the instance is, so that even deliveries to a paused endpoint are completed. */
function selectOperator({ db }: Statements, { instanceId, id }: Named) {
  return db
    .selectFrom('operator_endpoints')
    .innerJoin('instances', join => join.on('instances.id', '=', instanceId))
    .select(['instances.id as instance_id', 'operator_endpoints.id', 'url', 'secret'])
    .select(['operator_endpoints.previous_secret', 'operator_endpoints.previous_secret_until', 'events', 'active'])
    .select(['description', 'operator_endpoints.created_at'])
    .select(eb => eb.fn.coalesce('operator_endpoints.deleted_at', 'instances.deleted_at').as('deleted_at'))
    .where('operator_endpoints.id', '=', id)
}

/** The columns of a cleared default endpoint. After a new URL is set, it receives the kinds of the contract. */
export const CLEARED = { webhook_url: null, webhook_events: null, webhook_active: 1, webhook_description: null }

function operations({ statements, sealing }: Core) {
  const { db } = statements
  const ofInstance = ({ instanceId }: { instanceId: InstanceId }) => instanceId
  const isMissing = (rows: readonly unknown[]) => rows.length === 0

  /**
   * Nodes that do not know endpoints would post the deliveries of every endpoint as those of the default one, and record events for
   * no other endpoint.
   */
  const areOldNodesLeft = (tx: Transaction) => hasOldNodes(statements, tx, 'endpoints')

  type Creation = Named & Omit<EndpointSettings, 'events'> & { events: string; sealed: Uint8Array; now: number }

  async function create(tx: Transaction, input: Creation): Promise<CreateOutcome['kind']> {
    const { instanceId, id, url, sealed, events, active, description, now } = input
    const instance = db
      .selectFrom('instances')
      .select('webhook_url')
      .where('id', '=', instanceId)
      .where('deleted_at', 'is', null)
    const [found] = await tx.query(statements.locking(instance, 'update', 'instances'))
    if (found === undefined) return 'no_instance'
    if (await areOldNodesLeft(tx)) return 'old_nodes'
    const others = db.selectFrom('endpoints').select('id').where('instance_id', '=', instanceId)
    const count = (await tx.query(others.where('deleted_at', 'is', null))).length + (found.webhook_url === null ? 0 : 1)
    if (count >= MAX_ENDPOINTS) return 'too_many'
    const row = { instance_id: instanceId, id, url, secret: sealed, events, active: active ? 1 : 0, description }
    await tx.query(db.insertInto('endpoints').values({ ...row, created_at: now }))
    return 'created'
  }

  async function change(
    tx: Transaction,
    { instanceId, id, changes }: Named & { changes: Partial<EndpointSettings> },
  ): Promise<ChangeOutcome['kind'] | 'unchanged'> {
    if (await areOldNodesLeft(tx)) return 'old_nodes'
    const row = await findLocked(tx, { instanceId, id })
    if (row === undefined || row.url === null) return 'no_endpoint'
    const { url, events, active, description } = changes
    const set = {
      ...(url !== undefined && { url }),
      ...(events !== undefined && { events: JSON.stringify(events) }),
      ...(active !== undefined && { active: active ? 1 : 0 }),
      ...(description !== undefined && { description }),
    }
    if (!differs({ ...row, events: JSON.stringify(eventsOf(row.events)) }, set)) return 'unchanged'
    await update(tx, { instanceId, id }, set)
    return 'changed'
  }

  async function findLocked(tx: Transaction, { instanceId, id }: Named): Promise<EndpointRow | undefined> {
    const [row] = await tx.query<EndpointRow>(
      id === DEFAULT_ENDPOINT
        ? statements.locking(
            selectDefault(statements).where('id', '=', instanceId).where('deleted_at', 'is', null),
            'update',
            'instances',
          )
        : statements.locking(
            selectOthers(statements)
              .where('instance_id', '=', instanceId)
              .where('id', '=', id)
              .where('deleted_at', 'is', null),
            'update',
            'endpoints',
          ),
    )
    return row
  }

  /** Sets columns of `endpoints` or, for the default endpoint, the corresponding columns of `instances`. */
  async function update(tx: Transaction, { instanceId, id }: Named, set: Record<string, unknown>): Promise<boolean> {
    if (id !== DEFAULT_ENDPOINT) {
      const query = db
        .updateTable('endpoints')
        .set({ id, ...set })
        .where('instance_id', '=', instanceId)
      return !isMissing(await tx.query(query.where('id', '=', id).where('deleted_at', 'is', null).returning('id')))
    }
    const columns = Object.entries(set).map(([name, value]) => [`webhook_${name}`, value])
    const query = db.updateTable('instances').set({ id: instanceId, ...Object.fromEntries(columns) })
    const present = query.where('id', '=', instanceId).where('webhook_url', 'is not', null)
    return !isMissing(await tx.query(present.where('deleted_at', 'is', null).returning('id')))
  }

  async function replaceSecret(
    tx: Transaction,
    { instanceId, id, secret, now }: Named & { secret: string; now: number },
  ): Promise<boolean> {
    const row = await findLocked(tx, { instanceId, id })
    if (row === undefined) return false
    const place = endpointSecretPlace(instanceId, id)
    const rotated = rotate(row, secret, now, {
      seal: text => sealing.seal(instanceId, place, Buffer.from(text)),
      open: sealed => sealing.open(instanceId, place, sealed).toString(),
    })
    const { secret: webhook_secret, ...previous } = rotated
    await tx.query(
      id === DEFAULT_ENDPOINT
        ? db
            .updateTable('instances')
            .set({ webhook_secret, ...previous })
            .where('id', '=', instanceId)
        : db.updateTable('endpoints').set(rotated).where('instance_id', '=', instanceId).where('id', '=', id),
    )
    return true
  }

  async function remove(tx: Transaction, { instanceId, id, now }: Named & { now: number }): Promise<boolean> {
    if (id !== DEFAULT_ENDPOINT) return update(tx, { instanceId, id }, { deleted_at: now })
    const query = db.updateTable('instances').set(CLEARED).where('id', '=', instanceId)
    const present = query.where('webhook_url', 'is not', null).where('deleted_at', 'is', null)
    return !isMissing(await tx.query(present.returning('id')))
  }

  return {
    create: oneByOne('endpoints.create', ofInstance, create, kind => kind === 'created'),
    change: oneByOne('endpoints.change', ofInstance, change, kind => kind === 'changed'),
    replaceSecret: oneByOne('endpoints.replaceSecret', ofInstance, replaceSecret),
    delete: oneByOne('endpoints.delete', ofInstance, remove),
  }
}
