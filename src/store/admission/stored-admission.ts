import { sql } from 'kysely'
import type { InstanceId } from '../../domain/ids.ts'
import type { Session } from '../engine/backend.ts'
import type { Core } from '../engine/core.ts'
import type { Operation } from '../engine/operation.ts'
import type { Admission, Admitted } from './admission.ts'

/** Length of a rate window (contract §2). */
const WINDOW_MS = 60_000

/**
 * Counts in memory and caches the instance of each token, because a single process sees every call and every change of a
 * token. Each map has about one entry per instance.
 */
export class LocalAdmission implements Admission {
  readonly #core: Core
  readonly #ratePerMinute: number
  readonly #clock: () => number
  readonly #windows = new Map<InstanceId, { opensAt: number; calls: number }>()
  readonly #instanceByDigest = new Map<string, InstanceId>()
  /** Incremented when a token is dropped. A read that began before must not be cached afterwards. */
  #forgotten = 0
  readonly #find

  /** @param clock monotonic, in milliseconds */
  constructor(core: Core, ratePerMinute: number, clock: () => number = () => Math.floor(performance.now())) {
    this.#core = core
    this.#ratePerMinute = ratePerMinute
    this.#clock = clock
    this.#find = core.statements.one((p: { digest: Uint8Array }) =>
      core.statements.db.selectFrom('instances').select('id').where('token_digest', '=', p.digest),
    )
  }

  async admit(tokenDigest: string): Promise<Admitted | null> {
    const instanceId = this.#instanceByDigest.get(tokenDigest) ?? (await this.#read(tokenDigest))
    return instanceId === null ? null : this.#count(instanceId)
  }

  /** Drops the cached token of an instance after it was replaced or deleted. */
  forgetToken(instanceId: InstanceId): void {
    this.#forgotten += 1
    for (const [digest, owner] of this.#instanceByDigest) {
      if (owner === instanceId) this.#instanceByDigest.delete(digest)
    }
    const now = this.#clock()
    for (const [id, { opensAt }] of this.#windows) {
      if (now >= opensAt + WINDOW_MS) this.#windows.delete(id)
    }
  }

  async #read(tokenDigest: string): Promise<InstanceId | null> {
    const forgotten = this.#forgotten
    const [instance] = await this.#core.reader.run(this.#find, { digest: Buffer.from(tokenDigest, 'hex') })
    if (instance === undefined) return null
    if (forgotten === this.#forgotten) this.#instanceByDigest.set(tokenDigest, instance.id)
    return instance.id
  }

  #count(instanceId: InstanceId): Admitted {
    const now = this.#clock()
    let window = this.#windows.get(instanceId)
    if (window === undefined || now >= window.opensAt + WINDOW_MS) {
      window = { opensAt: now, calls: 0 }
      this.#windows.set(instanceId, window)
    }
    window.calls += 1
    return admitted(instanceId, window.calls, window.opensAt + WINDOW_MS - now, this.#ratePerMinute)
  }
}

/** Counts in the database, by its clock, for all nodes together. */
export class SharedAdmission implements Admission {
  readonly #core: Core
  readonly #count: Operation<{ digest: string }, Admitted | null>

  constructor(core: Core, ratePerMinute: number) {
    this.#core = core
    this.#count = countCalls(core, ratePerMinute)
  }

  /** Nothing is cached: every call queries the database. */
  forgetToken(): void {}

  admit(tokenDigest: string): Promise<Admitted | null> {
    return this.#core.write(this.#count, { digest: tokenDigest })
  }
}

function countCalls(core: Core, ratePerMinute: number): Operation<{ digest: string }, Admitted | null> {
  const { statements } = core
  const count = statements.rows({ token_digest: 'blob', calls: 'integer' }, db =>
    db
      .insertInto('rate_windows')
      .columns(['instance_id', 'opened_at', 'calls'])
      .expression(eb =>
        eb
          .selectFrom('input')
          .innerJoin('instances', 'instances.token_digest', 'input.token_digest')
          .select(['instances.id', statements.now.as('now'), 'input.calls'])
          // All nodes lock rows in the same order, which prevents deadlocks.
          .orderBy('instances.token_digest'),
      )
      .onConflict(oc =>
        oc.column('instance_id').doUpdateSet(eb => {
          const over = sql`${eb.ref('rate_windows.opened_at')} + ${sql.lit(WINDOW_MS)} <= excluded.opened_at`
          return {
            opened_at: sql<number>`case when ${over} then excluded.opened_at else rate_windows.opened_at end`,
            calls: sql<number>`case when ${over} then 0 else rate_windows.calls end + excluded.calls`,
          }
        }),
      )
      .returning(['instance_id', 'rate_windows.calls'])
      .returning(eb => [
        sql<number>`greatest(0, opened_at + ${sql.lit(WINDOW_MS)} - ${statements.now})`.as('reset_ms'),
        eb
          .selectFrom('instances')
          .select(sql<string>`encode(token_digest, 'hex')`.as('digest'))
          .whereRef('instances.id', '=', 'rate_windows.instance_id')
          .as('digest'),
      ]),
  )
  async function run(session: Session, inputs: readonly { digest: string }[]): Promise<(Admitted | null)[]> {
    const callsByDigest = new Map<string, number>()
    for (const { digest } of inputs) callsByDigest.set(digest, (callsByDigest.get(digest) ?? 0) + 1)
    const rows = await session.each(
      count,
      [...callsByDigest].map(([digest, calls]) => ({ token_digest: Buffer.from(digest, 'hex'), calls })),
    )
    const windows = new Map(rows.map(row => [row.digest, row]))
    const before = new Map(callsByDigest)
    return inputs.map(({ digest }) => {
      const window = windows.get(digest)
      if (window === undefined) return null
      const later = before.get(digest)! - 1
      before.set(digest, later)
      return admitted(window.instance_id, window.calls - later, window.reset_ms, ratePerMinute)
    })
  }
  return { name: 'admission.count', instanceId: () => '', run, runAlone: run }
}

/** @param calls calls in the window so far, including this one */
function admitted(instanceId: InstanceId, calls: number, resetMs: number, limit: number): Admitted {
  return { instanceId, withinRate: calls <= limit, limit, remaining: Math.max(0, limit - calls), resetMs }
}
