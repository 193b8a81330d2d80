import type { Transaction } from '../engine/backend.ts'
import type { Core } from '../engine/core.ts'
import { eraseSome } from '../engine/erase-some.ts'
import { fencedOneByOne } from '../engine/operation.ts'
import type { Database } from '../engine/schema/database.ts'
import { IS_QUEUED, IS_SETTLED } from '../engine/schema/messages.ts'
import type { Lease } from '../leases/leases.ts'

/** The tables that are erased in steps, in this order, and their key columns. */
const TABLES = {
  attempts: ['instance_id', 'event_id', 'delivery_seq', 'attempt_number'],
  finished_deliveries: ['instance_id', 'event_id', 'seq'],
  events: ['instance_id', 'id'],
  event_feeds: ['instance_id'],
  connection_reports: ['instance_id'],
  endpoints: ['instance_id', 'id'],
  messages: ['instance_id', 'id'],
  incoming_messages: ['instance_id', 'id'],
  idempotency_keys: ['instance_id', 'key'],
  numbers: ['instance_id', 'number'],
  contacts: ['instance_id', 'number'],
  groups: ['instance_id', 'id'],
  directory_fills: ['instance_id'],
  number_orders: ['instance_id', 'number'],
  number_budgets: ['instance_id'],
  paces: ['instance_id'],
  pace_uses: ['instance_id', 'message_id'],
  connection_closes: ['instance_id', 'at', 'code'],
  connection_health: ['instance_id'],
  credentials: ['instance_id', 'type', 'id'],
  sandbox_records: ['instance_id', 'key'],
  phone_orders: ['instance_id', 'id'],
  api_keys: ['instance_id', 'id'],
  handouts: ['instance_id', 'id'],
  passkey_answers: ['instance_id'],
  media: ['instance_id', 'id'],
  media_downloads: ['instance_id', 'media_id'],
  media_fetches: ['instance_id', 'media_id'],
} as const satisfies { [T in Exclude<TableOfInstances, OtherTable>]: readonly (keyof Database[T])[] }

/** Erased last. `deliveries` and `media_files` have no rows left at that time. */
type OtherTable = 'deliveries' | 'media_files' | 'media_usage' | 'rate_windows' | 'connections' | 'leases'

type TableOfInstances = {
  [T in keyof Database]: 'instance_id' extends keyof Database[T] ? T : never
}[keyof Database]

type Step = 'pending' | 'more' | 'gone'

/** Erases every row of a deleted instance in small commits. */
export class Erasure {
  readonly #core: Core
  readonly #step

  constructor(core: Core) {
    this.#core = core
    this.#step = fencedOneByOne('instances.erase', (tx, { lease }: { lease: Lease }) => this.#erase(tx, lease))
  }

  /**
   * Erases nothing and returns false while the instance is not deleted, or has a queued message, an unfinished delivery
   * or a file.
   */
  async erase(lease: Lease): Promise<boolean> {
    let step: Step
    do step = await this.#core.write(this.#step, { lease })
    while (step === 'more')
    if (step === 'gone') await this.#eraseTraces()
    return step === 'gone'
  }

  /**
   * Removes the deleted rows from the database's write-ahead log. If another process is reading the database, this fails silently, and a later
   * retention step repeats it.
   */
  async #eraseTraces(): Promise<void> {
    this.#core.traces.note()
    await this.#core.traces.erase().catch(() => undefined)
  }

  async #erase(tx: Transaction, { instanceId }: Lease): Promise<Step> {
    if (!(await this.#mayGo(tx, instanceId))) return 'pending'
    for (const [table, columns] of Object.entries(TABLES)) {
      // No message is queued any more, so the index of settled messages finds all of them.
      const indexed = table === 'messages' ? IS_SETTLED : undefined
      const erased = await eraseSome(
        tx,
        this.#core.statements,
        instanceId,
        table as keyof typeof TABLES,
        columns,
        indexed,
      )
      if (erased !== 'none') return 'more'
    }
    const { db, dialect } = this.#core.statements
    if (dialect.isShared) await tx.query(db.deleteFrom('rate_windows').where('instance_id', '=', instanceId))
    await tx.query(db.deleteFrom('media_usage').where('instance_id', '=', instanceId))
    await tx.query(db.deleteFrom('connections').where('instance_id', '=', instanceId))
    await tx.query(db.deleteFrom('leases').where('instance_id', '=', instanceId))
    await tx.query(db.deleteFrom('instances').where('id', '=', instanceId))
    return 'gone'
  }

  async #mayGo(tx: Transaction, instanceId: string): Promise<boolean> {
    const { db } = this.#core.statements
    const rows = await tx.query(
      db
        .selectFrom('instances')
        .select('id')
        .where('id', '=', instanceId)
        .where('deleted_at', 'is not', null)
        .where(({ not, exists, selectFrom }) =>
          not(
            exists(
              selectFrom('messages')
                .select('messages.id')
                .where('messages.instance_id', '=', instanceId)
                .where(IS_QUEUED),
            ),
          ),
        )
        .where(({ not, exists, selectFrom }) =>
          not(
            exists(
              selectFrom('deliveries').select('deliveries.event_id').where('deliveries.instance_id', '=', instanceId),
            ),
          ),
        )
        .where(({ not, exists, selectFrom }) =>
          not(
            exists(
              selectFrom('media_files').select('media_files.id').where('media_files.instance_id', '=', instanceId),
            ),
          ),
        ),
    )
    return rows.length > 0
  }
}
