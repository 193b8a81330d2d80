import { type RawBuilder, sql } from 'kysely'
import { MAX_OPERATOR_ENDPOINTS, type OperatorEndpoint, type SigningSecrets } from '../../domain/events/endpoint.ts'
import { type EndpointId, firstEventId, type InstanceId } from '../../domain/ids.ts'
import { OPERATOR_SCOPE, operatorSecretPlace } from '../encryption/sealing.ts'
import type { Transaction } from '../engine/backend.ts'
import type { Core } from '../engine/core.ts'
import { differs, oneByOne } from '../engine/operation.ts'
import { isToOperator } from '../engine/schema/events.ts'
import type { OperatorEndpointsTable } from '../engine/schema/instances.ts'
import { hasOldNodes } from '../leases/old-nodes.ts'
import type { EndpointSettings } from './endpoints.ts'
import {
  type CreateOperatorOutcome,
  MAX_COUNTED_DELIVERIES,
  type NewOperatorEndpoint,
  type OperatorDeliveries,
  type OperatorEndpoints,
} from './operator-endpoints.ts'
import { previousAt, rotate } from './previous-secrets.ts'

type Row = OperatorEndpointsTable

/**
 * One row for each endpoint, not one for each of its instances: creating, changing or deleting an endpoint is one
 * commit, and a new instance needs no rows.
 */
export class StoredOperatorEndpoints implements OperatorEndpoints {
  readonly #core: Core
  readonly #operations

  constructor(core: Core) {
    this.#core = core
    this.#operations = operations(core)
  }

  async create(endpoint: NewOperatorEndpoint, now: number): Promise<CreateOperatorOutcome> {
    const { id, secret, events, active, ...rest } = endpoint
    const row: Row = {
      ...rest,
      id,
      secret: this.#seal(id, secret),
      previous_secret: null,
      previous_secret_until: null,
      events: JSON.stringify(events),
      active: active ? 1 : 0,
      created_at: now,
      deleted_at: null,
    }
    const kind = await this.#core.write(this.#operations.create, row)
    return kind === 'created' ? { kind, endpoint: this.#toEndpoint(row) } : { kind }
  }

  async list(): Promise<OperatorEndpoint[]> {
    const query = this.#select().orderBy('created_at').orderBy('id')
    return (await this.#core.reader.query(query)).map(row => this.#toEndpoint(row))
  }

  async find(id: EndpointId): Promise<OperatorEndpoint | null> {
    const [row] = await this.#core.reader.query(this.#select().where('id', '=', id))
    return row === undefined ? null : this.#toEndpoint(row)
  }

  async change(
    id: EndpointId,
    { events, active, ...rest }: Partial<EndpointSettings>,
  ): Promise<OperatorEndpoint | null> {
    const set = {
      ...rest,
      ...(events !== undefined && { events: JSON.stringify(events) }),
      ...(active !== undefined && { active: active ? 1 : 0 }),
    }
    return this.#update(id, set)
  }

  async delete(id: EndpointId, now: number): Promise<boolean> {
    return (await this.#update(id, { deleted_at: now })) !== null
  }

  async replaceSecret(id: EndpointId, secret: string, now: number): Promise<OperatorEndpoint | null> {
    return this.#announce(await this.#core.write(this.#operations.replaceSecret, { id, secret, now }))
  }

  async findSecrets(id: EndpointId, now: number): Promise<SigningSecrets | null> {
    const [row] = await this.#core.reader.query(this.#select().where('id', '=', id))
    if (row === undefined) return null
    const { previous_secret, previous_secret_until } = row
    const previous = previousAt(now, previous_secret && this.#open(id, previous_secret), previous_secret_until)
    return { current: this.#open(id, row.secret), previous: previous.map(({ secret }) => secret) }
  }

  async listWaiting(id: EndpointId): Promise<InstanceId[]> {
    const { db } = this.#core.statements
    const open = db.selectFrom('deliveries').select('instance_id').distinct().where('endpoint_id', '=', id)
    return (await this.#core.reader.query(open.where(isToOperator('deliveries')))).map(row => row.instance_id)
  }

  async countDeliveries(id: EndpointId, givenUpSince: number): Promise<OperatorDeliveries> {
    const { reader, statements } = this.#core
    const counts = countsQuery(id, firstEventId(givenUpSince))
    const [row] = await reader.query<OperatorDeliveries>({ compile: () => counts.compile(statements.db) })
    const { waiting = 0, retrying = 0, givenUp = 0 } = row ?? {}
    return { waiting: Number(waiting), retrying: Number(retrying), givenUp: Number(givenUp) }
  }

  async #update(id: EndpointId, set: object): Promise<OperatorEndpoint | null> {
    const outcome = await this.#core.write(this.#operations.update, { id, set })
    return this.#announce(outcome?.row ?? null)
  }

  async #announce(row: Row | null): Promise<OperatorEndpoint | null> {
    if (row === null) return null
    // A lane may hold deliveries because the endpoint was inactive.
    for (const instanceId of await this.listWaiting(row.id)) this.#core.hints.publish('webhook', instanceId)
    return this.#toEndpoint(row)
  }

  #select() {
    return this.#core.statements.db.selectFrom('operator_endpoints').selectAll().where('deleted_at', 'is', null)
  }

  #toEndpoint(row: Row): OperatorEndpoint {
    const { id, url, description } = row
    return {
      id,
      url,
      secret: this.#open(id, row.secret),
      previousSecretUntil: row.previous_secret_until,
      events: JSON.parse(row.events),
      active: row.active === 1,
      description,
      createdAt: row.created_at,
    }
  }

  #open(id: EndpointId, sealed: Uint8Array): string {
    return this.#core.sealing.open(OPERATOR_SCOPE, operatorSecretPlace(id), sealed).toString()
  }

  #seal(id: EndpointId, secret: string): Uint8Array {
    return this.#core.sealing.seal(OPERATOR_SCOPE, operatorSecretPlace(id), Buffer.from(secret))
  }
}

/** Whether the operator endpoint of the row has an unfinished delivery, of any instance or of one. */
export function hasDeliveries(instanceId?: InstanceId): RawBuilder<boolean> {
  const ofOne = instanceId === undefined ? sql`` : sql` and d.instance_id = ${instanceId}`
  return sql<boolean>`exists (select 1 from deliveries as d
    where d.endpoint_id = operator_endpoints.id and ${isToOperator('d')}${ofOne})`
}

function countsQuery(id: EndpointId, givenUpSince: string): RawBuilder<OperatorDeliveries> {
  const count = (rows: RawBuilder<unknown>) =>
    sql`(select count(*) from (select 1 from ${rows} limit ${sql.lit(MAX_COUNTED_DELIVERIES)}) as counted)`
  const open = sql`deliveries as d where d.endpoint_id = ${id} and ${isToOperator('d')}`
  const givenUp = sql`finished_deliveries as f where f.endpoint_id = ${id} and ${isToOperator('f')}
    and f.superseded = 0 and f.state = 'exhausted' and f.event_id >= ${givenUpSince}`
  return sql`select ${count(open)} as waiting, ${count(sql`${open} and d.readiness = 'retry'`)} as retrying,
    ${count(givenUp)} as ${sql.ref('givenUp')}`
}

function operations({ statements, sealing }: Core) {
  const { db } = statements
  const ofNone = () => ''

  async function update(tx: Transaction, { id, set }: { id: EndpointId; set: object }): Promise<Row | null> {
    const query = db
      .updateTable('operator_endpoints')
      .set({ id, ...set })
      .where('id', '=', id)
      .where('deleted_at', 'is', null)
    const [row] = await tx.query(query.returningAll())
    return row ?? null
  }

  async function findLocked(tx: Transaction, id: EndpointId): Promise<Row | undefined> {
    const present = db.selectFrom('operator_endpoints').selectAll().where('id', '=', id).where('deleted_at', 'is', null)
    const [row] = await tx.query(statements.locking(present, 'update', 'operator_endpoints'))
    return row
  }

  async function change(tx: Transaction, { id, set }: { id: EndpointId; set: object }) {
    const row = await findLocked(tx, id)
    if (row === undefined || !differs(row, set)) return row === undefined ? null : { row, isChanged: false }
    return { row: (await update(tx, { id, set }))!, isChanged: true }
  }

  async function replaceSecret(
    tx: Transaction,
    { id, secret, now }: { id: EndpointId; secret: string; now: number },
  ): Promise<Row | null> {
    const row = await findLocked(tx, id)
    if (row === undefined) return null
    const place = operatorSecretPlace(id)
    const set = rotate(row, secret, now, {
      seal: text => sealing.seal(OPERATOR_SCOPE, place, Buffer.from(text)),
      open: sealed => sealing.open(OPERATOR_SCOPE, place, sealed).toString(),
    })
    return update(tx, { id, set })
  }

  return {
    create: oneByOne(
      'operatorEndpoints.create',
      ofNone,
      async (tx, row: Row): Promise<CreateOperatorOutcome['kind']> => {
        if (await hasOldNodes(statements, tx, 'operator_endpoints')) return 'old_nodes'
        // Locks a row that always exists, so that concurrent calls cannot exceed the limit.
        const turn = db.selectFrom('meta').select('key').where('key', '=', 'key_check')
        await tx.query(statements.locking(turn, 'update', 'meta'))
        const present = db.selectFrom('operator_endpoints').select('id').where('deleted_at', 'is', null)
        if ((await tx.query(present)).length >= MAX_OPERATOR_ENDPOINTS) return 'too_many'
        await tx.query(db.insertInto('operator_endpoints').values(row))
        return 'created'
      },
      kind => kind === 'created',
    ),

    update: oneByOne('operatorEndpoints.update', ofNone, change, outcome => outcome?.isChanged === true),
    replaceSecret: oneByOne('operatorEndpoints.replaceSecret', ofNone, replaceSecret),
  }
}
