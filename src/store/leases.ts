import { sql } from 'kysely'
import type { Core } from './core.ts'
import { oneByOne } from './operation.ts'
import type { Transaction } from './session.ts'
import type { Statements } from './statement.ts'
import type { Attendance, Lease, Leases } from './store.ts'

const LEASE_MS = 15_000
/** A node that has not been heard of for so long gets no share; renewals come every 5 s. */
const NODE_SEEN_MS = 8_000
/** What nobody took whose share it is goes to whoever comes first. */
const LEFT_OVER_AFTER_MS = 5_000

interface LeaseRow {
  instance_id: string
  owner: string | null
  epoch: number
}

export class StoredLeases implements Leases {
  readonly #core: Core
  readonly #operations

  constructor(core: Core) {
    this.#core = core
    this.#operations = operations(core.statements)
  }

  acquire(owner: string, limit: number): Promise<Lease[]> {
    return this.#acquire(owner, limit, 0)
  }

  acquireLeftOver(owner: string, limit: number): Promise<Lease[]> {
    return this.#acquire(owner, limit, LEFT_OVER_AFTER_MS)
  }

  async #acquire(owner: string, limit: number, freeForMs: number): Promise<Lease[]> {
    const taken = await this.#core.write(this.#operations.acquire, { owner, limit, freeForMs })
    for (const { instanceId } of taken) this.#core.hints.give('connection', instanceId)
    return taken
  }

  attend(owner: string): Promise<Attendance> {
    return this.#core.write(this.#operations.attend, { owner })
  }

  async leave(owner: string): Promise<void> {
    await this.#core.write(this.#operations.leave, { owner })
  }

  renew(owner: string): Promise<Lease[]> {
    return this.#core.write(this.#operations.renew, { owner })
  }

  async release(lease: Lease): Promise<void> {
    await this.#core.write(this.#operations.release, { lease })
    this.#core.hints.give('free', lease.instanceId)
  }
}

function operations({ db, now, kind }: Statements) {
  const until = sql<number>`${now} + ${sql.lit(LEASE_MS)}`
  const seenUntil = sql<number>`${now} + ${sql.lit(NODE_SEEN_MS)}`
  /** What somebody else is writing right now is passed over. */
  const free = kind === 'postgres' ? sql`for update skip locked` : sql``

  async function renew(tx: Transaction, { owner }: { owner: string }): Promise<Lease[]> {
    const rows = await tx.query(
      db
        .updateTable('leases')
        .set({ lease_until: until })
        .where('owner', '=', owner)
        .where('lease_until', '>', now)
        .returning(['instance_id', 'owner', 'epoch']),
    )
    // A connection being recorded at this moment is passed over: the record says when it was last open.
    await tx.query(
      db
        .with('open', qb =>
          qb
            .selectFrom('connections')
            .select('instance_id')
            .where('state', '=', 'connected')
            .where('instance_id', 'in', eb =>
              eb
                .selectFrom('leases')
                .select('leases.instance_id')
                .where('owner', '=', owner)
                .where('lease_until', '>', now),
            )
            .modifyEnd(free),
        )
        .updateTable('connections')
        .set({ last_connected_at: now })
        .where('instance_id', 'in', eb => eb.selectFrom('open').select('open.instance_id')),
    )
    return rows.map(toLease)
  }

  /** Connections whose owner is gone: when they were last open is what that owner said last. */
  async function orphan(tx: Transaction, rows: readonly LeaseRow[]): Promise<void> {
    if (rows.length === 0) return
    const instanceIds = rows.map(row => row.instance_id)
    await tx.query(
      db
        .updateTable('connections')
        .set({
          state: 'reconnecting',
          cause: 'owner_gone',
          reason: 'Whoever kept the connection is gone; it is made anew.',
          since: now,
        })
        .where('instance_id', 'in', instanceIds)
        .where('state', '=', 'connected'),
    )
  }

  /** The eldest first, so that one that comes changes the fewest shares. */
  async function attend(tx: Transaction, { owner }: { owner: string }): Promise<Attendance> {
    await tx.query(db.deleteFrom('nodes').where('seen_until', '<=', now))
    await tx.query(
      db
        .insertInto('nodes')
        .values({ id: owner, started_at: now, seen_until: seenUntil })
        .onConflict(oc => oc.column('id').doUpdateSet({ seen_until: seenUntil })),
    )
    const nodes = await tx.query(db.selectFrom('nodes').select('id').orderBy('started_at').orderBy('id'))
    const foreign = sql<number>`case when owner <> ${owner} and lease_until > ${now} then lease_until end`
    const [leases] = await tx.query(
      db
        .selectFrom('leases')
        .select(eb => [eb.fn.countAll<number>().as('count'), eb.fn.min(foreign).as('lapse'), now.as('now')]),
    )
    const place = nodes.findIndex(({ id }) => id === owner)
    const { count, lapse, now: countedAt } = leases!
    const share = Math.floor(count / nodes.length) + (place < count % nodes.length ? 1 : 0)
    return { share, nodes: nodes.length, nextLapseMs: lapse === null ? null : lapse - countedAt }
  }

  return {
    acquire: oneByOne(
      'leases.acquire',
      () => '',
      async (tx, { owner, limit, freeForMs }: { owner: string; limit: number; freeForMs: number }) => {
        const rows = await tx.query(
          db
            .with('free', qb =>
              qb
                .selectFrom('leases')
                .select('instance_id')
                .where('lease_until', '<=', sql<number>`${now} - cast(${freeForMs} as bigint)`)
                .orderBy('instance_id')
                .limit(limit)
                .modifyEnd(free),
            )
            .updateTable('leases')
            .set(eb => ({ owner, epoch: eb('epoch', '+', 1), lease_until: until }))
            .where('instance_id', 'in', eb => eb.selectFrom('free').select('free.instance_id'))
            .returning(['instance_id', 'owner', 'epoch']),
        )
        await orphan(tx, rows)
        return rows.map(toLease)
      },
    ),

    attend: oneByOne('leases.attend', () => '', attend),

    leave: oneByOne(
      'leases.leave',
      () => '',
      async (tx, { owner }: { owner: string }) => {
        await tx.query(db.deleteFrom('nodes').where('id', '=', owner))
      },
    ),

    renew: {
      ...oneByOne('leases.renew', () => '', renew),
      urgent: true,
    },

    release: oneByOne(
      'leases.release',
      ({ lease }: { lease: Lease }) => lease.instanceId,
      async (tx, { lease }: { lease: Lease }) => {
        await tx.query(
          db
            .updateTable('leases')
            .set({ owner: null, lease_until: now })
            .where('instance_id', '=', lease.instanceId)
            .where('owner', '=', lease.owner)
            .where('epoch', '=', lease.epoch),
        )
      },
    ),
  }
}

function toLease({ instance_id, owner, epoch }: LeaseRow): Lease {
  return { instanceId: instance_id, owner: owner!, epoch }
}
