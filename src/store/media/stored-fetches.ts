import { type RawBuilder, sql } from 'kysely'
import type { InstanceId } from '../../domain/ids.ts'
import { formOf } from '../../domain/media.ts'
import type { MessageFile } from '../../domain/message.ts'
import { CLOCK_TOLERANCE_MS } from '../../kit/clock.ts'
import type { Transaction } from '../engine/backend.ts'
import type { Core } from '../engine/core.ts'
import { oneByOne } from '../engine/operation.ts'
import { IS_QUEUED } from '../engine/schema/messages.ts'
import type { Statements } from '../engine/statement.ts'
import type { FetchedFile, ReceiveOutcome } from './downloads.ts'
import { type Fetch, type Fetches, type FetchFailure, type FullPlaces, LONGEST_FETCH_PAUSE_MS } from './fetches.ts'
import { FileRows } from './file-rows.ts'

/** A fetch that its node has not extended for this long is claimed again. */
const CLAIM_MS = 8_000
/** One claim drops at most this many fetches without a queued message. */
const MAX_TRIES = 50
/** At most this many fetches of an instance are examined for a claim, so that a backlog does not block the process. */
const EXAMINED = 200

type OneFetch = Pick<Fetch, 'instanceId' | 'mediaId'>

export class StoredFetches implements Fetches {
  readonly #core: Core
  readonly #operations

  constructor(core: Core) {
    this.#core = core
    this.#operations = operations(core.statements)
  }

  claim(full: FullPlaces, now: number): Promise<Fetch | null> {
    return this.#core.write(this.#operations.claim, { full, now })
  }

  async nextInMs(full: FullPlaces): Promise<number | null> {
    const { db, now } = this.#core.statements
    const next = sql<{
      in_ms: number
    }>`select ${dueAt('f', now)} - ${now} as in_ms from ${firstOfEach(full, now)} order by in_ms limit 1`
    const [row] = await this.#core.reader.query({ compile: () => next.compile(db) })
    return row === undefined ? null : Number(row.in_ms)
  }

  extend(fetch: Fetch): Promise<boolean> {
    return this.#core.write(this.#operations.extend, fetch)
  }

  async recordFetched(fetch: Fetch, file: FetchedFile): Promise<ReceiveOutcome> {
    const outcome = await this.#core.write(this.#operations.fetched, { ...fetch, file })
    if (outcome === 'stored') this.#publish(fetch)
    return outcome
  }

  async recordRetry(fetch: Fetch, attempts: number, pauseMs: number): Promise<void> {
    await this.#core.write(this.#operations.retry, { ...fetch, attempts, pauseMs })
  }

  async recordFailed(fetch: Fetch, failure: FetchFailure, now: number): Promise<void> {
    await this.#core.write(this.#operations.failed, { ...fetch, failure, now })
    this.#publish(fetch)
  }

  #publish({ instanceId }: Fetch): void {
    // The row contained the URL, which may be secret.
    this.#core.traces.note()
    this.#core.hints.publish('files', instanceId)
    this.#core.hints.publish('log', instanceId)
  }
}

/** When the fetch is due; 0 if a clock that was ahead recorded it. */
function dueAt(table: 'f' | 'candidates', now: RawBuilder<number>): RawBuilder<number> {
  const column = sql.ref(`${table}.due_at`)
  const latest = sql`${now} + ${sql.lit(LONGEST_FETCH_PAUSE_MS + CLOCK_TOLERANCE_MS)}`
  return sql`case when ${column} > ${latest} then 0 else ${column} end`
}

/**
 * Selects as `f`, for each instance that is not full, the fetch that is due first among those whose host is not full.
 * Each instance is found by one search in the index, however many rows the previous instance has.
 */
function firstOfEach({ instances, hosts }: FullPlaces, now: RawBuilder<number>): RawBuilder<unknown> {
  const and = (conditions: RawBuilder<unknown>[]) => sql.join([sql`1 = 1`, ...conditions], sql` and `)
  const hasPlace = and(instances.map(id => sql`owners.id <> ${id}`))
  const hostHasPlace = and(
    hosts.map(({ instanceId, host }) => sql`not (owners.id = ${instanceId} and candidates.host = ${host})`),
  )
  return sql`(
    with recursive owners(id) as (
      select min(instance_id) from media_fetches
      union all
      select (select min(later.instance_id) from media_fetches as later where later.instance_id > owners.id)
      from owners where owners.id is not null)
    select owners.id as instance_id, (
      select candidates.media_id from (
        select own.media_id, own.host, own.due_at from media_fetches as own
        where own.instance_id = owners.id order by own.due_at limit ${sql.lit(EXAMINED)}) as candidates
      where ${hostHasPlace} order by ${dueAt('candidates', now)} limit 1) as media_id
    from owners where owners.id is not null and ${hasPlace}) as firsts
    join media_fetches as f on f.instance_id = firsts.instance_id and f.media_id = firsts.media_id`
}

const instanceOf = ({ instanceId }: { instanceId: InstanceId }) => instanceId

function operations(statements: Statements) {
  const { db, now: databaseNow, dialect } = statements
  const rows = new FileRows(statements)
  const claimedUntil = sql<number>`${databaseNow} + ${sql.lit(CLAIM_MS)}`
  const query = <R>(tx: Transaction, raw: RawBuilder<R>) => tx.query({ compile: () => raw.compile(db) })
  const change = (fetch: OneFetch, set: { due_at: RawBuilder<number>; attempts?: number }) =>
    db
      .updateTable('media_fetches')
      .set(set)
      .where('instance_id', '=', fetch.instanceId)
      .where('media_id', '=', fetch.mediaId)
      .returning('media_id')

  return {
    claim: oneByOne(
      'fetches.claim',
      () => '' as InstanceId,
      async (tx, { full, now }: { full: FullPlaces; now: number }): Promise<Fetch | null> => {
        const claim = () =>
          query(
            tx,
            sql<{ instance_id: string; media_id: string; url: string; host: string; attempts: number }>`
            update media_fetches set due_at = ${claimedUntil} where (instance_id, media_id) in (
              select f.instance_id, f.media_id from ${firstOfEach(full, databaseNow)}
              where ${dueAt('f', databaseNow)} <= ${databaseNow}
              order by ${dueAt('f', databaseNow)} limit 1 ${dialect.lock(sql`for update of f skip locked`)})
            returning instance_id, media_id, url, host, attempts`,
          )
        for (let tries = 0; tries < MAX_TRIES; tries += 1) {
          const [claimed] = await claim()
          if (claimed === undefined) return null
          const { instance_id, media_id, ...fetch } = claimed
          const claimedFetch = { instanceId: instance_id, mediaId: media_id, ...fetch }
          if (await isNeeded(tx, rows, claimedFetch)) return claimedFetch
          await rows.letGo(tx, { instance_id, id: media_id, file_id: null }, 'not_fetched', now)
        }
        return null
      },
      fetch => fetch !== null,
    ),

    extend: oneByOne('fetches.extend', instanceOf, async (tx, fetch: OneFetch) => {
      // The next claim drops it.
      if (!(await isNeeded(tx, rows, fetch))) return false
      return (await tx.query(change(fetch, { due_at: claimedUntil }))).length > 0
    }),

    fetched: oneByOne(
      'fetches.fetched',
      instanceOf,
      (tx, input: OneFetch & { file: FetchedFile }) => finish(tx, statements, rows, input),
      outcome => outcome === 'stored',
    ),

    retry: oneByOne(
      'fetches.retry',
      instanceOf,
      async (tx, { attempts, pauseMs, ...fetch }: OneFetch & { attempts: number; pauseMs: number }) => {
        const due_at = sql<number>`${databaseNow} + ${sql.lit(Math.round(pauseMs))}`
        await tx.query(change(fetch, { due_at, attempts }))
      },
    ),

    failed: oneByOne(
      'fetches.failed',
      instanceOf,
      async (tx, { failure, now, ...fetch }: OneFetch & { failure: FetchFailure; now: number }) => {
        if (!(await lockPending(tx, statements, fetch))) return
        await rows.letGo(tx, { instance_id: fetch.instanceId, id: fetch.mediaId, file_id: null }, failure, now)
        await changeMessage(tx, statements, fetch, file => ({ ...file, fetch: 'failed' }))
      },
    ),
  }
}

async function finish(
  tx: Transaction,
  statements: Statements,
  rows: FileRows,
  { file, ...fetch }: OneFetch & { file: FetchedFile },
): Promise<ReceiveOutcome> {
  const { instanceId, mediaId } = fetch
  const { size, mimetype, sha256, expiresAt, quotaBytes, fileId } = file
  const { db } = statements
  const used = await rows.lockUsage(tx, instanceId)
  const reserved = await rows.findWriting(tx, file)
  if (reserved === null || !(await lockPending(tx, statements, fetch))) return 'given_up'
  if (!(await isNeeded(tx, rows, fetch))) return 'given_up'
  if (used - reserved + size > quotaBytes) return rows.fullOrBusy(tx, { ...file, used })
  await rows.markStored(tx, file)
  await rows.use(tx, instanceId, size - reserved)
  await tx.query(
    db
      .updateTable('media')
      .set({ size, mimetype, sha256, file_id: fileId, expires_at: expiresAt })
      .where('instance_id', '=', instanceId)
      .where('id', '=', mediaId),
  )
  await tx.query(db.deleteFrom('media_fetches').where('instance_id', '=', instanceId).where('media_id', '=', mediaId))
  await changeMessage(tx, statements, fetch, ({ fetch: _, ...asked }) => {
    const form = formOf(mimetype, asked.form)
    const notVoice = asked.form === 'voice' && form === 'audio' && { notVoice: true as const }
    // If WhatsApp does not show this type, the message fails when it is to be sent.
    return { ...asked, form: form ?? asked.form, ...notVoice }
  })
  return 'stored'
}

/** Whether a queued message contains the medium. */
async function isNeeded(tx: Transaction, rows: FileRows, { instanceId, mediaId }: OneFetch): Promise<boolean> {
  return (await rows.withoutQueued(tx, [{ instance_id: instanceId, id: mediaId }])).length === 0
}

/** Whether the medium still waits for its file. The medium is locked first, in the same order as in its erasure. */
async function lockPending(tx: Transaction, statements: Statements, { instanceId, mediaId }: OneFetch) {
  const { db } = statements
  const own = db.selectFrom('media').select(['gone_at', 'file_id']).where('instance_id', '=', instanceId)
  const [medium] = await tx.query(statements.locking(own.where('id', '=', mediaId), 'update', 'media'))
  return medium !== undefined && medium.gone_at === null && medium.file_id === null
}

/** Changes the description of the file in the queued message. */
async function changeMessage(
  tx: Transaction,
  statements: Statements,
  { instanceId, mediaId }: OneFetch,
  change: (file: Omit<MessageFile, 'mediaId'>) => Omit<MessageFile, 'mediaId'>,
): Promise<void> {
  const { db } = statements
  const queued = db.selectFrom('messages').select(['id', 'file']).where('instance_id', '=', instanceId)
  const own = queued.where('media_id', '=', mediaId).where('media_id', 'is not', null).where(IS_QUEUED)
  for (const { id, file } of await tx.query(statements.locking(own, 'update', 'messages'))) {
    if (file === null) continue
    const changed = db.updateTable('messages').set({ file: JSON.stringify(change(JSON.parse(file))) })
    await tx.query(changed.where('instance_id', '=', instanceId).where('id', '=', id))
  }
}
