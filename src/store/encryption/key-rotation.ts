import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Kysely, PostgresDialect } from 'kysely'
import type { Backend } from '../engine/backend.ts'
import type { DatabaseKind } from '../engine/database-kind.ts'
import type { StoreLogger } from '../engine/logger.ts'
import { listTables } from '../engine/migrations/list-tables.ts'
import { applyMissingSteps, findMissingSteps, refuseIncompatible } from '../engine/migrations/migrate.ts'
import { createMigrationPool, reach } from '../engine/postgres/pools.ts'
import { PostgresBackend } from '../engine/postgres/postgres-backend.ts'
import { refuseTransactionPooler } from '../engine/postgres/refuse-transaction-pooler.ts'
import { explained as explainedPostgres, refuseOtherEncoding } from '../engine/postgres/unusable.ts'
import { waitUntilAlone } from '../engine/postgres/wait-until-alone.ts'
import type { Database } from '../engine/schema/database.ts'
import { lockDataDir } from '../engine/sqlite/data-dir-lock.ts'
import { openSqlite, SqliteBackend } from '../engine/sqlite/sqlite-backend.ts'
import { TransactionalSqliteDialect } from '../engine/sqlite/transactional-dialect.ts'
import { explained } from '../engine/sqlite/unusable.ts'
import { Statements } from '../engine/statement.ts'
import { NoDataYet, OtherRotation, StoreUnusable, WrongMasterKey } from '../errors.ts'
import { KeyCheck, type KeyState, RotationRecord } from './key-check.ts'
import { type Resealed, Resealing } from './resealing.ts'
import { Sealing } from './sealing.ts'

export interface RotationOptions {
  /** The folder of the SQLite database. Not used if `databaseUrl` is set. */
  dataDir: string
  databaseUrl?: string | undefined
  /** The key that the service uses now, 32 bytes. */
  currentKey: Uint8Array
  /** Must return the same key until the rotation has finished. Not called if only the clean-up is left. */
  nextKey(): Uint8Array
  /** Makes the service use the next key. Called when all data is encrypted under it, perhaps again after a crash. */
  adopt(): void
  onProgress?(done: number, total: number): void
  logger?: StoreLogger | undefined
}

/** `already`: the data was already encrypted under the next key. At most `adopt` and the clean-up were left. */
type RotationOutcome = ({ kind: 'rotated' } & Resealed) | { kind: 'already' }

/**
 * Re-encrypts all sealed values under another master key while the service is stopped. If the rotation is killed, run
 * it again. A kill leaves this state:
 *
 * | killed … | leaves |
 * |---|---|
 * | before the rotation is recorded | no change |
 * | while values are re-encrypted | each value under exactly one of the keys; the service refuses to start (`KeyRotationUnfinished`) |
 * | after `switchKey`, before or after `adopt` | every value under the next key; the service still refuses to start |
 * | after the record is removed | a finished rotation |
 *
 * @throws DataDirInUse, StillInUse, NeedsSessions, ForeignDatabase, NewerSchema, NoDataYet, WrongMasterKey or OtherRotation
 * before any change; StoreUnusable also if an older version used the database last, StoreUnusable or StoreUnavailable if
 * the database fails
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
  const pool = createMigrationPool(databaseUrl, 1, options.logger)
  const db = new Kysely<Database>({ dialect: new PostgresDialect({ pool }) })
  try {
    await reach(pool.query('select 1'))
    await refuseOtherEncoding(pool, databaseUrl)
    await refuseTransactionPooler(databaseUrl)
    const openBackend = () => new PostgresBackend(databaseUrl, options.logger)
    return await rotate({ ...options, kind: 'postgres', db, openBackend, untilAlone: () => waitUntilAlone(pool) })
  } catch (error) {
    throw explainedPostgres(error, databaseUrl)
  } finally {
    await db.destroy()
  }
}

interface Rotation extends RotationOptions {
  kind: DatabaseKind
  db: Kysely<Database>
  /** @throws StillInUse */
  untilAlone(): Promise<void>
  openBackend(): Backend
}

async function rotate(rotation: Rotation): Promise<RotationOutcome> {
  const { kind, db, currentKey, nextKey, adopt } = rotation
  await refuseIncompatible(db, kind)
  if (!(await listTables(db, kind)).includes('meta')) throw new NoDataYet()
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
  if (state.rotation === 'none') await refuseOlderSchema(db, kind)
  await begin(rotation, record, next, state)
  // The service was updated in the middle of the rotation, and cannot apply them until the rotation has finished.
  await applyMissingSteps(db, kind, new KeyCheck(current))
  const resealed = await reseal(rotation, current, next)
  await record.switchKey(next)
  adopt()
  await record.end()
  return { kind: 'rotated', ...resealed }
}

/** The service already uses the next key, and only the record has to be removed. */
function isAdopted({ data, rotation }: KeyState): boolean {
  return data === 'current' && rotation === 'to_current'
}

function refuseOtherKeys({ data, rotation }: KeyState): void {
  if (data === 'current' && rotation === 'to_another') throw new OtherRotation()
  const known = data !== 'neither' && (rotation === 'none' || rotation === 'to_next')
  if (!known) throw new WrongMasterKey()
}

/** @throws StoreUnusable if a start has to migrate the database first: values may be in tables that are missing */
async function refuseOlderSchema(db: Kysely<Database>, kind: DatabaseKind): Promise<void> {
  const missing = await findMissingSteps(db, kind)
  if (missing.length > 0)
    throw new StoreUnusable(
      `The database was last used by an older version (it lacks ${missing.join(', ')}). Start this version once, stop it, ` +
        'and rotate the key then. Nothing was changed.',
    )
}

async function begin({ untilAlone }: Rotation, record: RotationRecord, next: Sealing, { rotation }: KeyState) {
  if (rotation === 'none') await record.begin(next)
  try {
    // The record is already there: nodes that start now are refused, and nodes that started before are detected.
    await untilAlone()
  } catch (error) {
    if (rotation === 'none') await record.end()
    throw error
  }
}

async function reseal({ kind, openBackend, onProgress }: Rotation, from: Sealing, to: Sealing): Promise<Resealed> {
  const backend = openBackend()
  try {
    return await new Resealing(backend, new Statements(kind), from, to, onProgress).run()
  } finally {
    await backend.close()
  }
}
