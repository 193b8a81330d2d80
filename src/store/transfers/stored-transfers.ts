import { sql } from 'kysely'
import type { InstanceId } from '../../domain/ids.ts'
import { ConnectionReports } from '../connections/connection-reports.ts'
import { credentialPlace } from '../encryption/sealing.ts'
import type { Transaction } from '../engine/backend.ts'
import type { Core } from '../engine/core.ts'
import { oneByOne } from '../engine/operation.ts'
import type { EventRecorder } from '../events/event-recorder.ts'
import { insertInstance } from '../instances/insert-instance.ts'
import type { ExportOutcome, ImportedInstance, ImportOutcome, LinkedInstance, Transfers } from './transfers.ts'

const IMPORTED = 'Imported from another program. Stop that program for good, then connect.'
/** The row of `meta` that every import writes. A second import waits for the commit of the first one, and then sees its instance. */
const LOCK = { key: 'import', value: Buffer.alloc(0) }
const EXPORTED = 'The session was exported to another program. Only one of the two may use it.'

interface SealedRow {
  type: string
  id: string
  value: Uint8Array
}

interface ImportInput {
  instance: Omit<ImportedInstance, 'rows'>
  rows: SealedRow[]
  now: number
}

type SealedExport =
  | Exclude<ExportOutcome, { kind: 'exported' }>
  | { kind: 'exported'; phone: string; rows: SealedRow[] }

export class StoredTransfers implements Transfers {
  readonly #core: Core
  readonly #operations

  constructor(core: Core, recorder: EventRecorder) {
    this.#core = core
    this.#operations = operations(core, new ConnectionReports(core.statements, recorder))
  }

  async findLinked(phone: string): Promise<LinkedInstance | null> {
    const [linked] = await this.#core.reader.query(linkedTo(this.#core, phone))
    return linked ?? null
  }

  async import({ rows, ...instance }: ImportedInstance, now: number): Promise<ImportOutcome> {
    const { sealing, hints } = this.#core
    const sealed = rows.map(({ type, id, value }) => {
      const place = credentialPlace(instance.id, type, id)
      return { type, id, value: sealing.seal(instance.id, place, value) }
    })
    const outcome = await this.#core.write(this.#operations.import, { instance, rows: sealed, now })
    if (outcome.kind === 'imported') {
      hints.publish('goal', instance.id)
      hints.publish('free', instance.id)
    }
    return outcome
  }

  async export(id: InstanceId, now: number): Promise<ExportOutcome> {
    const { sealing, hints } = this.#core
    const outcome = await this.#core.write(this.#operations.export, { id, now })
    if (outcome.kind !== 'exported') return outcome
    for (const topic of ['goal', 'connection', 'deliveries', 'webhook', 'log'] as const) hints.publish(topic, id)
    const rows = outcome.rows.map(row => {
      const place = credentialPlace(id, row.type, row.id)
      return { ...row, value: sealing.open(id, place, row.value) }
    })
    return { ...outcome, rows }
  }
}

function linkedTo({ statements }: Core, phone: string) {
  return statements.db
    .selectFrom('instances')
    .innerJoin('connections', 'connections.instance_id', 'instances.id')
    .select(['instances.id', 'instances.name'])
    .where('connections.phone', '=', phone)
    .where('instances.kind', '=', 'whatsapp')
    .where('instances.deleted_at', 'is', null)
}

function operations(core: Core, reports: ConnectionReports) {
  const { statements } = core
  const { db, now: databaseNow } = statements
  const columns = { instance_id: 'text', type: 'text', id: 'text', value: 'blob' } as const
  const insertKeys = statements.insert('credentials', columns)

  return {
    import: oneByOne(
      'transfers.import',
      ({ instance }: ImportInput) => instance.id,
      async (tx, { instance, rows, now }): Promise<ImportOutcome> => {
        const lock = db.insertInto('meta').values(LOCK)
        await tx.query(lock.onConflict(conflict => conflict.column('key').doUpdateSet({ value: LOCK.value })))
        const [known] = await tx.query(linkedTo(core, instance.phone))
        if (known !== undefined) return { kind: 'known', ...known }
        const connection = { goal: 'idle', state: 'stopped', cause: 'imported', reason: IMPORTED } as const
        await insertInstance(tx, core, { ...instance, ...connection, kind: 'whatsapp' }, now)
        // The stop needs no event: the first event will report the connection.
        const report = { instance_id: instance.id, reported: 'instance.stopped' } as const
        await tx.query(db.insertInto('connection_reports').values(report))
        await tx.each(
          insertKeys,
          rows.map(row => ({ ...row, instance_id: instance.id })),
        )
        return { kind: 'imported', id: instance.id }
      },
      ({ kind }) => kind === 'imported',
    ),

    export: oneByOne(
      'transfers.export',
      ({ id }: { id: InstanceId; now: number }) => id,
      async (tx, { id, now }): Promise<SealedExport> => {
        // The lock waits for the writes of the owner.
        const lease = db
          .selectFrom('leases')
          .select(['owner', sql<number>`case when lease_until > ${databaseNow} then 1 else 0 end`.as('is_held')])
          .where('instance_id', '=', id)
        const [found] = await tx.query(statements.locking(lease, 'update', 'leases'))
        if (found === undefined) return { kind: 'not_linked' }
        const phone = await findLinked(tx, id)
        if (phone === null) return { kind: 'not_linked' }
        if (found.owner !== null && found.is_held === 1) return { kind: 'running' }
        await stop(tx, id, now)
        await reports.record(tx, id, now)
        const keys = db.selectFrom('credentials').select(['type', 'id', 'value']).where('instance_id', '=', id)
        return { kind: 'exported', phone, rows: await tx.query(keys.orderBy('type').orderBy('id')) }
      },
      ({ kind }) => kind === 'exported',
    ),
  }

  async function findLinked(tx: Transaction, id: InstanceId): Promise<string | null> {
    const [linked] = await tx.query(
      db
        .selectFrom('connections')
        .innerJoin('instances', 'instances.id', 'connections.instance_id')
        .innerJoin('credentials', 'credentials.instance_id', 'instances.id')
        .select('connections.phone')
        .where('instances.id', '=', id)
        .where('instances.kind', '=', 'whatsapp')
        .where('instances.deleted_at', 'is', null)
        .where('credentials.type', '=', 'creds')
        // An accepted logout is still carried out, so the session is not exported.
        .where('connections.goal', 'not in', ['logged_out', 'relinked']),
    )
    return linked?.phone ?? null
  }

  /** The new epoch refuses late writes of a former owner. */
  async function stop(tx: Transaction, id: InstanceId, now: number): Promise<void> {
    const free = { owner: null, lease_until: databaseNow }
    await tx.query(
      db
        .updateTable('leases')
        .set(eb => ({ ...free, epoch: eb('epoch', '+', 1) }))
        .where('instance_id', '=', id),
    )
    await tx.query(
      db
        .updateTable('connections')
        .set(eb => ({
          ...{ state: 'stopped' as const, cause: 'exported' as const, reason: EXPORTED, since: now },
          // If the number is connected here again, the time in the other program must not count as time that it was down.
          last_connected_at: null,
          ...{ goal: 'idle' as const, goal_version: eb('goal_version', '+', 1) },
          ...{ qr: null, qr_expires_at: null, pairing_code: null, retry_at: null, pairing_phone: null },
        }))
        .where('instance_id', '=', id),
    )
  }
}
