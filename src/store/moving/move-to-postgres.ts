import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { KeyCheck } from '../encryption/key-check.ts'
import { Sealing } from '../encryption/sealing.ts'
import { explained as explainedPostgres } from '../engine/postgres/unusable.ts'
import { lockForMove } from '../engine/sqlite/data-dir-lock.ts'
import {
  type MoveMarker,
  markerFile,
  readMoveMarker,
  refuseMoved,
  writeMoveMarker,
} from '../engine/sqlite/move-marker.ts'
import { explained } from '../engine/sqlite/unusable.ts'
import { StoreUnusable } from '../errors.ts'
import { type MoveRecord, PostgresTarget, type TableProgress } from './postgres-target.ts'
import { digestOf, SqliteSource } from './sqlite-source.ts'
import { TableDigest } from './table-digest.ts'
import { MOVED_TABLES } from './tables.ts'

interface MoveOptions {
  /** The folder of the SQLite database. */
  dataDir: string
  databaseUrl: string
  /** 32 bytes. The data stays encrypted under this key. */
  masterKey: Uint8Array
  onProgress?(progress: { done: number; total: number; table: string }): void
  /** Called when all rows are in PostgreSQL, before they are compared. */
  onCompare?(): void
}

/** `already`: the data had been moved before. */
type MoveOutcome = { kind: 'moved'; rows: number; tables: number } | { kind: 'already' }

const NOTHING: TableProgress = { rows: 0, sum: '0', after: null }

/**
 * Moves all data from SQLite to PostgreSQL while the service is stopped. If the move is killed, run it again. A kill
 * leaves this state:
 *
 * | killed … | leaves |
 * |---|---|
 * | before the marker in the data folder | no change, or empty tables in PostgreSQL |
 * | during the copy or comparison | the marker, and in PostgreSQL the record and its rows; the service does not start |
 * | after the record is removed | a finished move; the service starts on PostgreSQL; the next run updates the marker |
 *
 * The SQLite database is only read.
 * @throws StoreUnusable or StoreUnavailable
 */
export async function moveToPostgres(options: MoveOptions): Promise<MoveOutcome> {
  const { dataDir, databaseUrl } = options
  const path = join(dataDir, 'pombal.db')
  if (!existsSync(path)) throw new StoreUnusable(`${path} does not exist: there is nothing to move.`)
  const toClose: (() => unknown)[] = []
  try {
    toClose.push(lockForMove(dataDir))
    const source = new SqliteSource(path)
    toClose.push(() => source.close())
    const target = new PostgresTarget(databaseUrl)
    toClose.push(() => target.close())
    return await new Move(options, source, target).run()
  } catch (error) {
    throw withoutRow(explained(explainedPostgres(error, databaseUrl), path))
  } finally {
    for (const close of toClose.reverse()) await close()
  }
}

class Move {
  readonly #options: MoveOptions
  readonly #source: SqliteSource
  readonly #target: PostgresTarget
  readonly #keyCheck: KeyCheck

  constructor(options: MoveOptions, source: SqliteSource, target: PostgresTarget) {
    this.#options = options
    this.#source = source
    this.#target = target
    this.#keyCheck = new KeyCheck(new Sealing(options.masterKey))
  }

  async run(): Promise<MoveOutcome> {
    await this.#source.refuseUnusable(this.#keyCheck)
    await this.#target.refuseUnusable()
    const { dataDir } = this.#options
    const marker: MoveMarker = readMoveMarker(dataDir) ?? { id: randomUUID(), state: 'moving', at: now() }
    const state = await this.#target.find(marker.id)
    if (state.kind === 'finished') {
      this.#markMoved(marker)
      return { kind: 'already' }
    }
    // A second copy of the data would send the same messages again.
    if (marker.state === 'moved') refuseMoved(dataDir)
    if (state.kind === 'empty') this.#refuseOtherTarget(marker)
    const begun = state.kind === 'begun' ? state.record : await this.#begin(marker)
    // From now on, no other database is accepted: this one may contain all data even if its last answer was lost.
    marker.into ??= this.#target.place
    writeMoveMarker(dataDir, marker)
    // No service can start on this database any more, but one may have started before.
    await this.#target.refuseOthers()
    const record = await this.#copy(begun)
    this.#options.onCompare?.()
    await this.#compare(record)
    const sequences = this.#source.sequences().filter(({ name }) => MOVED_TABLES.includes(name))
    await this.#target.finish(marker.id, sequences, this.#source.meta())
    this.#markMoved(marker)
    const counts = Object.values(record.tables).map(({ rows }) => rows)
    return { kind: 'moved', rows: counts.reduce((sum, rows) => sum + rows, 0), tables: MOVED_TABLES.length }
  }

  /** @throws StoreUnusable if the move has begun into another database, which may be in use already */
  #refuseOtherTarget({ into }: MoveMarker): void {
    if (into === undefined) return
    throw new StoreUnusable(
      `The data is being moved to ${into}, and may be complete there: set DATABASE_URL to that database. To give up that move, ` +
        `make sure that no service uses ${into}, and delete ${markerFile(this.#options.dataDir)}. Nothing was changed.`,
    )
  }

  async #begin(marker: MoveMarker): Promise<MoveRecord> {
    await this.#target.prepare(this.#keyCheck)
    // Written first, so that the service never runs on SQLite while a part of its data is in PostgreSQL.
    writeMoveMarker(this.#options.dataDir, marker)
    return this.#target.begin(marker.id)
  }

  #markMoved(marker: MoveMarker): void {
    if (marker.state === 'moving') writeMoveMarker(this.#options.dataDir, { ...marker, state: 'moved', at: now() })
  }

  async #copy(begun: MoveRecord): Promise<MoveRecord> {
    const counts = MOVED_TABLES.map(table => [table, this.#source.count(table)] as const)
    const total = counts.reduce((sum, [, count]) => sum + count, 0)
    let done = Object.values(begun.tables).reduce((sum, { rows }) => sum + rows, 0)
    await this.#target.commitWithoutWaiting()
    let record = begun
    for (const [table, count] of counts) {
      this.#options.onProgress?.({ done, total, table })
      const before = record.tables[table] ?? NOTHING
      record = await this.#copyTable(table, record, copied => {
        this.#options.onProgress?.({ done: done + copied - before.rows, total, table })
      })
      const { rows } = record.tables[table] ?? NOTHING
      if (rows !== count) throw new StoreUnusable(`${table} has ${count} rows in SQLite, but ${rows} were read.`)
      done += rows - before.rows
    }
    return record
  }

  /** Copies the rows that PostgreSQL does not have yet. @returns the record after the last page */
  async #copyTable(table: string, begun: MoveRecord, onRows: (rows: number) => void): Promise<MoveRecord> {
    let record = begun
    const { rows, sum, after } = begun.tables[table] ?? NOTHING
    const columns = await this.#columns(table)
    const digest = new TableDigest(rows, BigInt(sum))
    let stored = Promise.resolve()
    for (const page of this.#source.pages(table, columns, after)) {
      const added = digestOf(page)
      digest.rows += added.rows
      digest.sum += added.sum
      // PostgreSQL stores one page while the next one is read.
      await stored
      const progress = { rows: digest.rows, sum: String(digest.sum), after: page.after }
      const next = { ...record, tables: { ...record.tables, [table]: progress } }
      stored = this.#target.store(table, columns, page, record, next)
      stored.catch(() => undefined)
      record = next
      onRows(digest.rows)
    }
    await stored
    return record
  }

  /** @throws StoreUnusable if the databases differ in the columns of the table */
  async #columns(table: string) {
    const columns = await this.#target.columns(table)
    const inTarget = columns.map(({ name }) => name).toSorted()
    const inSource = this.#source.columns(table).toSorted()
    if (inTarget.join() !== inSource.join())
      throw new StoreUnusable(`${table} has the columns ${inSource} in SQLite, but ${inTarget} in PostgreSQL.`)
    return columns
  }

  /** @throws StoreUnusable if PostgreSQL contains anything other than the rows that were read */
  async #compare(record: MoveRecord): Promise<void> {
    for (const table of MOVED_TABLES) {
      const expected = record.tables[table] ?? NOTHING
      const found = await this.#target.digest(table, await this.#columns(table))
      if (found.rows !== expected.rows || found.sum !== expected.sum)
        throw new StoreUnusable(
          `${table} differs: ${expected.rows} rows with the digest ${expected.sum} in SQLite, ${found.rows} with ${found.sum} ` +
            `in PostgreSQL. Begin again: empty the PostgreSQL database, and delete moved-to-postgres.json in the data folder.`,
        )
    }
  }
}

function now(): string {
  return new Date().toISOString()
}

/** PostgreSQL quotes the refused row, which may contain secrets. */
function withoutRow(error: unknown): unknown {
  if (!(error instanceof pg.DatabaseError)) return error
  const place = [error.table, error.column, error.constraint].filter(Boolean).join(', ')
  return new StoreUnusable(`PostgreSQL refused a statement (${error.code}${place && `: ${place}`}).`)
}
