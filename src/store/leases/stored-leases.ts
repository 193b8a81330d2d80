import { sql } from 'kysely'
import { INSTANCE_KINDS, type InstanceKind } from '../../domain/instance.ts'
import type { StoreClock } from '../clock.ts'
import type { Transaction } from '../engine/backend.ts'
import type { Core } from '../engine/core.ts'
import { oneByOne } from '../engine/operation.ts'
import type { Statements } from '../engine/statement.ts'
import { StoreUnavailable } from '../errors.ts'
import type { Attendance, HeldLease, Lease, Leases } from './leases.ts'
import { VALID_FOR_MS } from './renewal.ts'

const LEASE_MS = 15_000
/** A node that has not registered for this long gets no share. Nodes register every 5 s. */
const NODE_SEEN_MS = 8_000
/** An instance that is free for this long may be taken beyond a node's share. */
const LEFT_OVER_AFTER_MS = 5_000

interface LeaseRow {
  instance_id: string
  owner: string | null
  epoch: number
  kind: InstanceKind
}

interface RenewalInput {
  owner: string
  skipsLocked: boolean
}

interface Acquisition {
  owner: string
  limit: number
  kinds: readonly InstanceKind[]
  /** 0: any free lease. */
  freeForMs: number
}

export class StoredLeases implements Leases {
  readonly #core: Core
  readonly #clock: Pick<StoreClock, 'settled'>
  readonly #operations

  constructor(core: Core, clock: Pick<StoreClock, 'settled'>) {
    this.#core = core
    this.#clock = clock
    this.#operations = operations(core.statements)
  }

  acquire(owner: string, limit: number, kinds = INSTANCE_KINDS): Promise<HeldLease[]> {
    return this.#acquire({ owner, limit, kinds, freeForMs: 0 })
  }

  acquireLeftOver(owner: string, limit: number, kinds = INSTANCE_KINDS): Promise<HeldLease[]> {
    return this.#acquire({ owner, limit, kinds, freeForMs: LEFT_OVER_AFTER_MS })
  }

  async #acquire(acquisition: Acquisition): Promise<HeldLease[]> {
    const taken = await this.#core.write(this.#operations.acquire, acquisition)
    for (const { instanceId } of taken) this.#core.hints.publish('connection', instanceId)
    return taken
  }

  attend(owner: string, runs = INSTANCE_KINDS, settings: string | null = null): Promise<Attendance> {
    return this.#core.write(this.#operations.attend, { owner, runs, settings })
  }

  async leave(owner: string): Promise<void> {
    await this.#core.write(this.#operations.leave, { owner })
  }

  /** After a suspension of the machine, the clock is right before the node acts again. */
  async renew(owner: string): Promise<HeldLease[]> {
    const [held] = await Promise.all([this.#renew(owner), this.#clock.settled?.()])
    return held
  }

  async #renew(owner: string): Promise<HeldLease[]> {
    try {
      return await this.#core.write(this.#operations.renew, { owner, skipsLocked: false })
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
      // A frozen node may hold the lock of one lease, or a migration the lock of the connections. The leases must not lapse.
      return this.#core.write(this.#operations.renew, { owner, skipsLocked: true })
    }
  }

  async release(lease: Lease): Promise<void> {
    await this.#core.write(this.#operations.release, { lease })
    this.#core.hints.publish('free', lease.instanceId)
  }
}

function operations({ db, now, dialect }: Statements) {
  const until = sql<number>`${now} + ${sql.lit(LEASE_MS)}`
  const seenUntil = sql<number>`${now} + ${sql.lit(NODE_SEEN_MS)}`
  /** Skips rows that another transaction is writing. */
  const free = dialect.lock(sql`for update skip locked`)

  /** A subquery, because SQLite returns columns of the changed table only. */
  const kindOf = sql<InstanceKind>`(select i.kind from instances as i where i.id = leases.instance_id)`.as('kind')

  /** A released lease is free whatever its time says, which may be in the future after a step of the clock. */
  function isFree(forMs: number) {
    const hasLapsed = sql<boolean>`lease_until <= ${now} - cast(${forMs} as bigint)`
    return forMs > 0 ? hasLapsed : sql<boolean>`(${hasLapsed} or owner is null)`
  }

  /** Skips connections that are being recorded, since the record sets the same column. */
  async function noteConnected(tx: Transaction, owner: string): Promise<void> {
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
  }

  async function renew(tx: Transaction, { owner, skipsLocked }: RenewalInput): Promise<HeldLease[]> {
    const lock = dialect.lock(skipsLocked ? sql`for no key update skip locked` : sql`for no key update`)
    await tx.query(
      db
        .with('owned', qb =>
          qb
            .selectFrom('leases')
            .select('instance_id')
            .where('owner', '=', owner)
            .where('lease_until', '>', now)
            .modifyEnd(lock),
        )
        .updateTable('leases')
        .set({ lease_until: until })
        .where('instance_id', 'in', eb => eb.selectFrom('owned').select('owned.instance_id')),
    )
    // A migration may hold the lock of the table. The next renewal makes up for it.
    if (!skipsLocked) await noteConnected(tx, owner)
    // A skipped lease is held only if it lasts for as long as this renewal is valid.
    const rows = await tx.query(
      db
        .selectFrom('leases')
        .select(['instance_id', 'owner', 'epoch', kindOf])
        .where('owner', '=', owner)
        .where('lease_until', '>', sql<number>`${now} + ${sql.lit(VALID_FOR_MS)}`),
    )
    return rows.map(toLease)
  }

  /** Marks connections of a former owner as reconnecting. `last_connected_at` stays as that owner last recorded it. */
  async function orphan(tx: Transaction, rows: readonly LeaseRow[]): Promise<void> {
    if (rows.length === 0) return
    const instanceIds = rows.map(row => row.instance_id)
    await tx.query(
      db
        .updateTable('connections')
        .set({
          state: 'reconnecting',
          cause: 'owner_gone',
          reason: 'The node that kept the connection is gone; another one is reconnecting.',
          since: now,
        })
        .where('instance_id', 'in', instanceIds)
        .where('state', '=', 'connected'),
    )
  }

  /** After the database's clock was set back: otherwise the leases and rows of nodes that are gone would last for too long. */
  async function shorten(tx: Transaction): Promise<void> {
    const lasting = db.selectFrom('leases').select('instance_id').where('lease_until', '>', until).modifyEnd(free)
    await tx.query(
      db
        .with('lasting', () => lasting)
        .updateTable('leases')
        .set({ lease_until: until })
        .where('instance_id', 'in', eb => eb.selectFrom('lasting').select('lasting.instance_id')),
    )
    await tx.query(db.updateTable('nodes').set({ seen_until: seenUntil }).where('seen_until', '>', seenUntil))
  }

  /** Ranks nodes by age, so that a new node changes as few shares as possible. */
  async function attend(
    tx: Transaction,
    { owner, runs, settings }: { owner: string; runs: readonly InstanceKind[]; settings: string | null },
  ): Promise<Attendance> {
    await shorten(tx)
    const sandbox = runs.includes('sandbox') ? 1 : 0
    // The row of a node that owns a lease stays: an owner without a row may be of the previous version (see
    // `hasOldNodes`).
    const owners = db.selectFrom('leases').select('owner').where('owner', 'is not', null).where('lease_until', '>', now)
    await tx.query(db.deleteFrom('nodes').where('seen_until', '<=', now).where('id', 'not in', owners))
    await tx.query(
      db
        .insertInto('nodes')
        .values({
          id: owner,
          started_at: now,
          seen_until: seenUntil,
          sandbox,
          endpoints: 1,
          media: 1,
          conversations: 1,
          urls: 1,
          operator_endpoints: 1,
          settings,
        })
        .onConflict(oc => oc.column('id').doUpdateSet({ seen_until: seenUntil, sandbox, settings })),
    )
    const seen = db.selectFrom('nodes').select(['id', 'sandbox', 'settings']).where('seen_until', '>', now)
    const nodes = await tx.query(seen.orderBy('started_at').orderBy('id'))
    const foreign = sql<number>`case when owner <> ${owner} and lease_until > ${now} then lease_until end`
    const leases = await tx.query(
      db
        .selectFrom('leases')
        .innerJoin('instances', 'instances.id', 'leases.instance_id')
        .select(eb => ['kind', eb.fn.countAll<number>().as('count'), eb.fn.min(foreign).as('lapse'), now.as('now')])
        .groupBy('kind'),
    )
    const count = (kind: InstanceKind) => leases.find(row => row.kind === kind)?.count ?? 0
    const ids = (some: typeof nodes) => some.map(({ id }) => id)
    const sandboxes = nodes.filter(node => node.sandbox === 1)
    const runners = { whatsapp: ids(nodes), sandbox: ids(sandboxes.length > 0 ? sandboxes : nodes) }
    const lapses = leases.flatMap(({ lapse, now: countedAt }) => (lapse === null ? [] : [lapse - countedAt]))
    return {
      shares: {
        whatsapp: shareOf(owner, runners.whatsapp, count('whatsapp')),
        sandbox: shareOf(owner, runners.sandbox, count('sandbox')),
      },
      leftOver: INSTANCE_KINDS.filter(kind => runners[kind].includes(owner)),
      nodes: nodes.length,
      otherSettings: nodes.flatMap(({ id, settings: others }) =>
        id === owner || others === null ? [] : [{ node: id, settings: others }],
      ),
      nextLapseMs: lapses.length === 0 ? null : Math.min(...lapses),
    }
  }

  /** Otherwise a renewal could wait behind a write that waits for a frozen node's lock, until the leases lapse. */
  const apart = { connection: 'leases' } as const

  const acquire = oneByOne(
    'leases.acquire',
    () => '',
    async (tx, { owner, limit, kinds, freeForMs }: Acquisition) => {
      const rows = await tx.query(
        db
          .with('free', qb =>
            qb
              .selectFrom('leases')
              .select('instance_id')
              .where(isFree(freeForMs))
              .where(({ exists, selectFrom }) =>
                exists(
                  selectFrom('instances')
                    .select('instances.id')
                    .whereRef('instances.id', '=', 'leases.instance_id')
                    .where('instances.kind', 'in', kinds),
                ),
              )
              .orderBy('instance_id')
              .limit(limit)
              .modifyEnd(free),
          )
          .updateTable('leases')
          .set(eb => ({ owner, epoch: eb('epoch', '+', 1), lease_until: until }))
          .where('instance_id', 'in', eb => eb.selectFrom('free').select('free.instance_id'))
          .returning(['instance_id', 'owner', 'epoch', kindOf]),
      )
      await orphan(tx, rows)
      return rows.map(toLease)
    },
  )

  /** Keeps the row, because the node still owns leases until its instances have stopped. `attend` deletes the row later. */
  const leave = oneByOne(
    'leases.leave',
    () => '',
    async (tx, { owner }: { owner: string }) => {
      await tx.query(db.updateTable('nodes').set({ seen_until: 0 }).where('id', '=', owner))
    },
  )

  return {
    acquire: { ...acquire, ...apart },
    attend: { ...oneByOne('leases.attend', () => '', attend), ...apart },
    leave: { ...leave, ...apart },
    renew: { ...oneByOne('leases.renew', () => '', renew), ...apart, urgent: true },

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

/** @param nodes the oldest first. If the instances cannot be divided evenly, the oldest nodes get one more */
function shareOf(owner: string, nodes: readonly string[], count: number): number {
  const place = nodes.indexOf(owner)
  if (place < 0) return 0
  return Math.floor(count / nodes.length) + (place < count % nodes.length ? 1 : 0)
}

function toLease({ instance_id, owner, epoch, kind }: LeaseRow): HeldLease {
  return { instanceId: instance_id, owner: owner!, epoch, kind }
}
