import { fdatasync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import Sqlite from 'better-sqlite3'
import { sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Session } from '../backend.ts'
import { Statements } from '../statement.ts'
import { SqliteBackend } from './sqlite-backend.ts'

const limit = vi.hoisted(() => ({ isReached: false }))

/** No thread starts while `limit` is reached. */
vi.mock('node:worker_threads', async importOriginal => {
  const original = await importOriginal<typeof import('node:worker_threads')>()
  class Worker extends original.Worker {
    constructor(...args: ConstructorParameters<typeof original.Worker>) {
      if (limit.isReached)
        throw Object.assign(new Error('Worker initialization failure'), { code: 'ERR_WORKER_INIT_FAILED' })
      super(...args)
    }
  }
  return { ...original, Worker }
})

const LOG_BYTES = 512 * 1024
const ROW_BYTES = 16_384
/** One commit changes a few more pages than its row fills. */
const COMMIT_BYTES = 2 * ROW_BYTES

describe("SQLite's log", () => {
  const { db } = new Statements('sqlite')
  let folder: string
  let file: string
  let backend: SqliteBackend

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'pombal-log-'))
    file = join(folder, 'pombal.db')
    backend = new SqliteBackend(file, promisify(fdatasync), LOG_BYTES)
    await write('create table t (x)')
  })
  afterEach(async () => {
    limit.isReached = false
    await backend.close()
    rmSync(folder, { recursive: true, force: true })
  })

  const run = (session: Session, text: string) =>
    session.query<Record<string, unknown>>({
      compile: () => sql<Record<string, unknown>>`${sql.raw(text)}`.compile(db),
    })
  const logSize = () => statSync(`${file}-wal`).size

  async function write(text = `insert into t values (randomblob(${ROW_BYTES}))`): Promise<void> {
    const tx = await backend.begin()
    await run(tx, text)
    await tx.commit()
  }

  /** Writes without a pause. @returns the largest size of the log */
  async function fill(bytes: number): Promise<number> {
    let largest = 0
    for (let written = 0; written < bytes; written += ROW_BYTES) {
      await write()
      largest = Math.max(largest, logSize())
    }
    return largest
  }

  test('is at most twice its usual size, even if writes never pause', async () => {
    expect(await fill(20 * LOG_BYTES)).toBeLessThan(2 * LOG_BYTES + COMMIT_BYTES)
    // SQLite would write it back in the main thread.
    const [automatic] = await run(backend.reader, 'pragma wal_autocheckpoint')
    expect(Number(automatic!['wal_autocheckpoint']) * 2_048).toBeGreaterThan(2 * LOG_BYTES)
    const [rows] = await run(backend.reader, 'select count(*) as n from t')
    expect(rows).toEqual({ n: (20 * LOG_BYTES) / ROW_BYTES })
    await backend.close()
    // The last connection has written everything back and removed the log.
    expect(readdirSync(folder)).toEqual(['pombal.db'])
    const other = new Sqlite(file)
    expect(other.pragma('integrity_check', { simple: true })).toBe('ok')
    other.close()
    backend = new SqliteBackend(file)
  })

  test('grows while another process reads an old state, delays no write, and starts again afterwards', async () => {
    const reader = new Sqlite(file, { readonly: true })
    reader.exec('begin')
    reader.prepare('select count(*) from t').get()
    expect(await fill(6 * LOG_BYTES)).toBeGreaterThan(6 * LOG_BYTES)
    reader.exec('commit')
    reader.close()
    const before = logSize()
    expect(await fill(10 * LOG_BYTES)).toBeLessThan(before + 3 * LOG_BYTES)
  })

  test('grows while no thread can start, fails and delays no write, and starts again afterwards', async () => {
    limit.isReached = true
    expect(await fill(3 * LOG_BYTES)).toBeGreaterThan(3 * LOG_BYTES)
    await expect(backend.eraseTraces()).rejects.toThrow('Worker initialization failure')
    limit.isReached = false
    const before = logSize()
    expect(await fill(10 * LOG_BYTES)).toBeLessThan(before + 3 * LOG_BYTES)
    const [rows] = await run(backend.reader, 'select count(*) as n from t')
    expect(rows).toEqual({ n: (13 * LOG_BYTES) / ROW_BYTES })
  })

  test('is emptied on demand, whatever is being written', async () => {
    const writing = fill(4 * LOG_BYTES)
    await backend.eraseTraces()
    await writing
    await backend.eraseTraces()
    expect(logSize()).toBe(0)
  })
})
