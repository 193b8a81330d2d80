import { sql } from 'kysely'
import type { InstanceId } from '../../domain/ids.ts'
import { type Clock, systemClock } from '../../kit/clock.ts'
import type { KeyUses } from '../api-keys/key-uses.ts'
import { parseScopes } from '../api-keys/stored-api-keys.ts'
import type { Session } from '../engine/backend.ts'
import type { Core } from '../engine/core.ts'
import type { Operation } from '../engine/operation.ts'
import type { Admission, Admitted } from './admission.ts'

/** Length of a rate window (contract §2). */
const WINDOW_MS = 60_000
/** A window that opened this far in the future was opened before the database's clock was set back. */
const CLOCK_STEP_MS = 10_000

/** The instance and the key that a token or key belongs to. */
interface Caller {
  instanceId: InstanceId
  key: Admitted['key']
  /** Null: never. */
  expiresAt: number | null
}

interface CallerRow {
  instance_id: string
  key_id: string | null
  key_name: string | null
  scopes: string | null
  expires_at: number | null
}

/**
 * Counts in memory and caches the instance of each token and key, because a single process sees every call and every change of
 * a token or key. Each map has about one entry per instance or key.
 */
export class LocalAdmission implements Admission {
  readonly #core: Core
  readonly #ratePerMinute: number
  readonly #uses: Pick<KeyUses, 'note'>
  readonly #clock: Pick<Clock, 'steady'>
  readonly #windows = new Map<InstanceId, { opensAt: number; calls: number }>()
  readonly #callerByDigest = new Map<string, Caller>()
  /** Incremented when a token or key is dropped. A read that began before must not be cached afterwards. */
  #forgotten = 0
  readonly #find

  constructor(
    core: Core,
    ratePerMinute: number,
    uses: Pick<KeyUses, 'note'>,
    clock: Pick<Clock, 'steady'> = systemClock,
  ) {
    this.#core = core
    this.#ratePerMinute = ratePerMinute
    this.#uses = uses
    this.#clock = clock
    this.#find = findStatement(core)
  }

  async admit(tokenDigest: string): Promise<Admitted | null> {
    const caller = await this.#findCaller(tokenDigest)
    if (caller === null) return null
    const { instanceId, key } = caller
    if (key !== null) this.#uses.note(instanceId, key.id, Date.now())
    const now = Math.floor(this.#clock.steady())
    let window = this.#windows.get(instanceId)
    if (window === undefined || now >= window.opensAt + WINDOW_MS) {
      window = { opensAt: now, calls: 0 }
      this.#windows.set(instanceId, window)
    }
    window.calls += 1
    const resetMs = window.opensAt + WINDOW_MS - now
    return { instanceId, key, calls: window.calls, limit: this.#ratePerMinute, resetMs }
  }

  async isValid(tokenDigest: string): Promise<boolean> {
    return (await this.#findCaller(tokenDigest)) !== null
  }

  async #findCaller(tokenDigest: string): Promise<Caller | null> {
    const caller = this.#callerByDigest.get(tokenDigest) ?? (await this.#read(tokenDigest))
    const hasExpired = caller !== null && caller.expiresAt !== null && caller.expiresAt <= Date.now()
    return hasExpired ? null : caller
  }

  /** Drops the cached token and keys of an instance after one of them was replaced, revoked or deleted. */
  forgetToken(instanceId: InstanceId): void {
    this.#forgotten += 1
    for (const [digest, caller] of this.#callerByDigest) {
      if (caller.instanceId === instanceId) this.#callerByDigest.delete(digest)
    }
    const now = Math.floor(this.#clock.steady())
    for (const [id, { opensAt }] of this.#windows) {
      if (now >= opensAt + WINDOW_MS) this.#windows.delete(id)
    }
  }

  async #read(tokenDigest: string): Promise<Caller | null> {
    const forgotten = this.#forgotten
    const [row] = await this.#core.reader.run(this.#find, { digest: Buffer.from(tokenDigest, 'hex') })
    if (row === undefined) return null
    const caller = { instanceId: row.instance_id, key: keyOf(row), expiresAt: row.expires_at }
    if (forgotten === this.#forgotten) this.#callerByDigest.set(tokenDigest, caller)
    return caller
  }
}

/** Counts in the database, by its clock, for all nodes together. Its statement is PostgreSQL's SQL. */
export class SharedAdmission implements Admission {
  readonly #core: Core
  readonly #uses: KeyUses
  readonly #count: Operation<{ digest: string }, Admitted | null>
  readonly #find

  constructor(core: Core, ratePerMinute: number, uses: KeyUses) {
    this.#core = core
    this.#uses = uses
    this.#count = countCalls(core, ratePerMinute)
    this.#find = findStatement(core)
  }

  async isValid(tokenDigest: string): Promise<boolean> {
    const [row] = await this.#core.reader.run(this.#find, { digest: Buffer.from(tokenDigest, 'hex') })
    return row !== undefined && (row.expires_at === null || row.expires_at > row.now)
  }

  /** Nothing is cached: every call queries the database. */
  forgetToken(): void {}

  async admit(tokenDigest: string): Promise<Admitted | null> {
    const caller = await this.#core.write(this.#count, { digest: tokenDigest })
    if (caller !== null && caller.key !== null) this.#uses.note(caller.instanceId, caller.key.id, Date.now())
    return caller
  }
}

/** Finds the caller of a token or key, even if the key has expired. */
function findStatement({ statements }: Core) {
  return statements.one(({ digest }: { digest: Uint8Array }) => {
    const { db, now } = statements
    const none = sql<string | null>`null`
    const ofTheToken = db
      .selectFrom('instances')
      .select('id as instance_id')
      .select([none.as('key_id'), none.as('key_name'), none.as('scopes')])
      .select([sql<number | null>`cast(null as bigint)`.as('expires_at'), now.as('now')])
      .where('token_digest', '=', digest)
    const ofAKey = db
      .selectFrom('api_keys')
      .innerJoin('instances', 'instances.id', 'api_keys.instance_id')
      .select(['instance_id', 'api_keys.id as key_id', 'api_keys.name as key_name', 'scopes', 'expires_at'])
      .select(now.as('now'))
      .where('digest', '=', digest)
      // A node of the previous version deletes an instance without its keys.
      .where('deleted_at', 'is', null)
    return ofTheToken.unionAll(ofAKey)
  })
}

/** Finds the callers of given tokens and keys, and counts the calls of each instance, in one statement. */
function countStatement({ statements }: Core) {
  const { now } = statements
  const none = sql<string | null>`null::text`
  return statements.rows({ token_digest: 'blob', calls: 'integer' }, db =>
    db
      .with('callers', callers => {
        const ofTokens = callers
          .selectFrom('input')
          .innerJoin('instances', 'instances.token_digest', 'input.token_digest')
          .select([
            'instances.id as instance_id',
            'instances.token_digest as place',
            'input.token_digest',
            'input.calls',
          ])
          .select([none.as('key_id'), none.as('key_name'), none.as('scopes')])
        const ofKeys = callers
          .selectFrom('input')
          .innerJoin('api_keys', 'api_keys.digest', 'input.token_digest')
          .innerJoin('instances', 'instances.id', 'api_keys.instance_id')
          .select([
            'instances.id as instance_id',
            'instances.token_digest as place',
            'input.token_digest',
            'input.calls',
          ])
          .select(['api_keys.id as key_id', 'api_keys.name as key_name', 'api_keys.scopes'])
          // A node of the previous version deletes an instance without its keys.
          .where('instances.deleted_at', 'is', null)
          .where(eb => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', now)]))
        return ofTokens.unionAll(ofKeys)
      })
      .with('counted', counted =>
        counted
          .insertInto('rate_windows')
          .columns(['instance_id', 'opened_at', 'calls'])
          .expression(eb =>
            eb
              .selectFrom('callers')
              .select(['instance_id', now.as('now'), sql<number>`sum(calls)::bigint`.as('calls')])
              .groupBy(['instance_id', 'place'])
              // All nodes lock rows in the same order, which prevents deadlocks.
              .orderBy('place'),
          )
          .onConflict(oc =>
            oc.column('instance_id').doUpdateSet(eb => {
              const openedAt = eb.ref('rate_windows.opened_at')
              const over = sql`(${openedAt} + ${sql.lit(WINDOW_MS)} <= excluded.opened_at
                or ${openedAt} > excluded.opened_at + ${sql.lit(CLOCK_STEP_MS)})`
              return {
                opened_at: sql<number>`case when ${over} then excluded.opened_at else rate_windows.opened_at end`,
                calls: sql<number>`case when ${over} then 0 else rate_windows.calls end + excluded.calls`,
              }
            }),
          )
          .returning(['instance_id', 'rate_windows.calls'])
          .returning(
            sql<number>`least(${sql.lit(WINDOW_MS)}, greatest(0, opened_at + ${sql.lit(WINDOW_MS)} - ${now}))`.as(
              'reset_ms',
            ),
          ),
      )
      .selectFrom('callers')
      .innerJoin('counted', 'counted.instance_id', 'callers.instance_id')
      .select(['callers.instance_id', 'key_id', 'key_name', 'scopes', 'counted.calls', 'reset_ms'])
      .select(sql<string>`encode(token_digest, 'hex')`.as('digest')),
  )
}

function countCalls(core: Core, ratePerMinute: number): Operation<{ digest: string }, Admitted | null> {
  const count = countStatement(core)
  async function run(session: Session, inputs: readonly { digest: string }[]): Promise<(Admitted | null)[]> {
    const callsByDigest = new Map<string, number>()
    for (const { digest } of inputs) callsByDigest.set(digest, (callsByDigest.get(digest) ?? 0) + 1)
    const rows = await session.each(
      count,
      [...callsByDigest].map(([digest, calls]) => ({ token_digest: Buffer.from(digest, 'hex'), calls })),
    )
    const callers = new Map(rows.map(row => [row.digest, row]))
    /** How many calls of each instance have no number yet. */
    const later = new Map<InstanceId, number>()
    for (const { instance_id: id, digest } of rows) later.set(id, (later.get(id) ?? 0) + callsByDigest.get(digest)!)
    return inputs.map(({ digest }) => {
      const caller = callers.get(digest)
      if (caller === undefined) return null
      const left = later.get(caller.instance_id)! - 1
      later.set(caller.instance_id, left)
      return {
        instanceId: caller.instance_id,
        key: keyOf(caller),
        calls: caller.calls - left,
        limit: ratePerMinute,
        resetMs: caller.reset_ms,
      }
    })
  }
  return { name: 'admission.count', instanceId: () => '', connection: 'admission', run, runAlone: run }
}

function keyOf({
  key_id: id,
  key_name: name,
  scopes,
}: Pick<CallerRow, 'key_id' | 'key_name' | 'scopes'>): Admitted['key'] {
  return id === null ? null : { id, name: name ?? '', scopes: parseScopes(scopes ?? '') }
}
