import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Kysely, PostgresDialect } from 'kysely'
import type { Backend } from '../engine/backend.ts'
import type { StoreLogger } from '../engine/logger.ts'
import type { Flavour } from '../engine/migrations/flavour.ts'
import { refuseOthers } from '../engine/migrations/migrate.ts'
import { tableExists } from '../engine/migrations/table-exists.ts'
import { createPatientPool, reach } from '../engine/postgres/pools.ts'
import { PostgresBackend } from '../engine/postgres/postgres-backend.ts'
import { refuseTransactionPooler } from '../engine/postgres/refuse-transaction-pooler.ts'
import { explained as explainedPostgres } from '../engine/postgres/unusable.ts'
import { waitUntilAlone } from '../engine/postgres/wait-until-alone.ts'
import type { Database } from '../engine/schema/database.ts'
import { lockDataDir } from '../engine/sqlite/data-dir-lock.ts'
import { openSqlite, SqliteBackend } from '../engine/sqlite/sqlite-backend.ts'
import { TransactionalSqliteDialect } from '../engine/sqlite/transactional-dialect.ts'
import { explained } from '../engine/sqlite/unusable.ts'
import { Statements } from '../engine/statement.ts'
import { NoDataYet, OtherRotation, WrongMasterKey } from '../errors.ts'
import { type KeyState, RotationRecord } from './key-check.ts'
import { type Resealed, Resealing } from './resealing.ts'
import { Sealing } from './sealing.ts'

export interface RotationOptions {
  /** Where the SQLite database is, unless `databaseUrl` is given. */
  dataDir: string
  databaseUrl?: string | undefined
  /** 32 bytes: what a start uses now. */
  currentKey: Uint8Array
  /** The same key every time, until the rotation has ended. Not asked for when all that is left is to clean up. */
  nextKey(): Uint8Array
  /** All data is under the next key: makes it the one that a start uses. May be called again after a crash. */
  adopt(): void
  onProgress?(done: number, total: number): void
  logger?: StoreLogger | undefined
}

/** What a rotation did. `already`: the data was under the next key before, and only `adopt` was left to do. */
export type RotationOutcome = ({ kind: 'rotated' } & Resealed) | { kind: 'already' }

/**
 * Puts all that is sealed under another master key, with the service stopped. It may be killed at any moment and run
 * again; what each moment leaves behind:
 *
 * | killed … | leaves |
 * |---|---|
 * | before the rotation is recorded | everything as it was |
 * | while values are sealed anew | values under either key, which open under exactly one; a start is refused (`KeyRotationUnfinished`) |
 * | after the data counts as turned, before or after `adopt` | everything under the next key; a start is refused still |
 * | after the record is gone | everything done |
 *
 * @throws DataDirInUse, StillInUse, NeedsSessions, ForeignDatabase, NewerSchema, NoDataYet, WrongMasterKey or OtherRotation, with
 * nothing changed; StoreUnusable or StoreUnavailable where the database fails
 */
export async function rotateMasterKey(options: RotationOptions): Promise<RotationOutcome> {
  return options.databaseUrl === undefined ? rotateOnSqlite(options) : rotateOnPostgres(options.databaseUrl, options)
}

async function rotateOnSqlite(options: RotationOptions): Promise<RotationOutcome> {
  const path = join(options.dataDir, 'pombal.db')
  if (!existsSync(path)) throw new NoDataYet()
  const toClose: (() => unknown)[] = []
  try {
    toClose.push(lockDataDir(options.dataDir))
    const db = new Kysely<Database>({ dialect: new TransactionalSqliteDialect({ database: openSqlite(path) }) })
    toClose.push(() => db.destroy())
    const openBackend = () => new SqliteBackend(path)
    return await rotate({ ...options, kind: 'sqlite', db, openBackend, untilAlone: async () => undefined })
  } catch (error) {
    throw explained(error, path)
  } finally {
    for (const close of toClose.reverse()) await close()
  }
}

async function rotateOnPostgres(databaseUrl: string, options: RotationOptions): Promise<RotationOutcome> {
  const pool = createPatientPool(databaseUrl, 1, options.logger)
  const db = new Kysely<Database>({ dialect: new PostgresDialect({ pool }) })
  try {
    await reach(pool.query('select 1'))
    await refuseTransactionPooler(databaseUrl)
    const openBackend = () => new PostgresBackend(databaseUrl, options.logger)
    return await rotate({ ...options, kind: 'postgres', db, openBackend, untilAlone: () => waitUntilAlone(pool) })
  } catch (error) {
    throw explainedPostgres(error, databaseUrl)
  } finally {
    await db.destroy()
  }
}

interface Means extends RotationOptions {
  kind: Flavour['kind']
  db: Kysely<Database>
  /** Throws `StillInUse`. */
  untilAlone(): Promise<void>
  openBackend(): Backend
}

async function rotate(means: Means): Promise<RotationOutcome> {
  const { kind, db, currentKey, nextKey, adopt } = means
  await refuseOthers(db, kind)
  if (!(await tableExists(db, kind, 'meta'))) throw new NoDataYet()
  const record = new RotationRecord(db)
  const current = new Sealing(currentKey)
  if (isAdopted(await record.read(current, null))) {
    await record.end()
    return { kind: 'already' }
  }
  const next = new Sealing(nextKey())
  const state = await record.read(current, next)
  refuseOtherKeys(state)
  if (state.data === 'next') {
    adopt()
    await record.end()
    return { kind: 'already' }
  }
  await begin(means, record, next, state)
  const resealed = await reseal(means, current, next)
  await record.turn(next)
  adopt()
  await record.end()
  return { kind: 'rotated', ...resealed }
}

/** The next key is what a start uses, and nothing is left but the record of it. */
function isAdopted({ data, rotation }: KeyState): boolean {
  return data === 'current' && rotation === 'to_current'
}

function refuseOtherKeys({ data, rotation }: KeyState): void {
  if (data === 'current' && rotation === 'to_another') throw new OtherRotation()
  const known = data !== 'neither' && (rotation === 'none' || rotation === 'to_next')
  if (!known) throw new WrongMasterKey()
}

async function begin({ untilAlone }: Means, record: RotationRecord, next: Sealing, { rotation }: KeyState) {
  if (rotation === 'none') await record.begin(next)
  try {
    // Recorded before: a node that starts from now on is refused, and one that started before is seen.
    await untilAlone()
  } catch (error) {
    if (rotation === 'none') await record.end()
    throw error
  }
}

async function reseal({ kind, openBackend, onProgress }: Means, from: Sealing, to: Sealing): Promise<Resealed> {
  const backend = openBackend()
  try {
    return await new Resealing(backend, new Statements(kind), from, to, onProgress).run()
  } finally {
    await backend.close()
  }
}
