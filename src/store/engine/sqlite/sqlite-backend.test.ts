import {
  closeSync,
  copyFileSync,
  fdatasync,
  fstatSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { promisify } from 'node:util'
import Sqlite from 'better-sqlite3'
import { sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { CONDITION_WITHIN_MS } from '../../../../test/deadlines.ts'
import { StoreUnavailable } from '../../errors.ts'
import type { Session } from '../backend.ts'
import { Statements } from '../statement.ts'
import { LogDamaged, rewriteLog } from './rewrite-log.ts'
import { openSqlite, SqliteBackend, type SyncFile } from './sqlite-backend.ts'

describe('the SQLite backend', () => {
  const { db } = new Statements('sqlite')
  let folder: string
  let backend: SqliteBackend
  let syncFile: SyncFile

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'pombal-sqlite-'))
    syncFile = promisify(fdatasync)
    backend = new SqliteBackend(join(folder, 'pombal.db'), descriptor => syncFile(descriptor))
  })
  afterEach(async () => {
    await backend.close()
    rmSync(folder, { recursive: true, force: true })
  })

  const run = (session: Session, text: string) =>
    session.query<Record<string, unknown>>({
      compile: () => sql<Record<string, unknown>>`${sql.raw(text)}`.compile(db),
    })

  test('a commit resolves only after the log that contains it is synced', async () => {
    const syncs: number[] = []
    const synced = Promise.withResolvers<void>()
    syncFile = async descriptor => {
      // The real sync takes long enough that a commit that does not wait for it would resolve first.
      await promisify(fdatasync)(descriptor)
      syncs.push(fstatSync(descriptor).ino)
      await synced.promise
    }
    const tx = await backend.begin()
    expect(await run(tx, 'pragma journal_mode')).toEqual([{ journal_mode: 'wal' }])
    await run(tx, 'create table t (x)')
    let resolved = false
    const committed = tx.commit().then(() => {
      resolved = true
    })
    await vi.waitFor(() => expect(syncs).toEqual([statSync(join(folder, 'pombal.db-wal')).ino]), CONDITION_WITHIN_MS)
    expect(resolved).toBe(false)
    // Readers see the commit already, and can wait for its sync.
    expect(await run(backend.reader, 'select * from t')).toEqual([])
    let isSynced = false
    const reading = backend.untilSynced().then(() => {
      isSynced = true
    })
    await new Promise(done => setImmediate(done))
    expect(isSynced).toBe(false)
    synced.resolve()
    await Promise.all([committed, reading])
  })

  test('a repeated query is prepared once; of many single queries, the latest stay prepared', async () => {
    const prepare = vi.spyOn(Sqlite.prototype, 'prepare')
    try {
      for (let n = 0; n < 1_000; n += 1) {
        await run(backend.reader, 'select 1')
        await run(backend.reader, `select ${n} as n`)
      }
      expect(prepare).toHaveBeenCalledTimes(1_001)
      expect(await run(backend.reader, 'select 999 as n')).toEqual([{ n: 999 }])
      expect(prepare).toHaveBeenCalledTimes(1_001)
      expect(await run(backend.reader, 'select 0 as n')).toEqual([{ n: 0 }])
      expect(prepare).toHaveBeenCalledTimes(1_002)
    } finally {
      prepare.mockRestore()
    }
  })

  describe('a commit that a power failure may undo', () => {
    const sizes: number[] = []
    beforeEach(() => {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
      sizes.length = 0
      syncFile = async descriptor => {
        sizes.push(fstatSync(descriptor).size)
      }
    })
    afterEach(() => {
      vi.useRealTimers()
    })

    const commit = async (change: string, isSynced: boolean) => {
      const tx = await backend.begin()
      await run(tx, change)
      await tx.commit(isSynced)
      return statSync(join(folder, 'pombal.db-wal')).size
    }

    test('does not wait for the disk; the next synced one syncs it too', async () => {
      const size = await commit('create table t (x)', false)
      expect(sizes).toEqual([])
      expect(await run(backend.reader, 'select * from t')).toEqual([])
      await commit('insert into t values (1)', true)
      expect(sizes).toHaveLength(1)
      expect(sizes[0]).toBeGreaterThanOrEqual(size)
    })

    test('is synced a little later, with those that follow it', async () => {
      await commit('create table t (x)', false)
      const size = await commit('insert into t values (1)', false)
      await vi.advanceTimersByTimeAsync(20)
      expect(sizes).toEqual([size])
      await commit('insert into t values (2)', false)
      await vi.advanceTimersByTimeAsync(20)
      expect(sizes).toHaveLength(2)
    })

    test('that cannot be synced later blocks the next one only until the log is written again', async () => {
      const working = syncFile
      syncFile = () => Promise.reject(new Error('the disk is gone'))
      await commit('create table t (x)', false)
      await vi.advanceTimersByTimeAsync(20)
      await expect(commit('insert into t values (1)', false)).rejects.toThrow(StoreUnavailable)
      syncFile = working
      await commit('insert into t values (2)', true)
      // One sync of the whole log, and one of the new commit after the log started again.
      expect(sizes).toHaveLength(2)
    })
  })

  describe('after a failed sync', () => {
    const log = () => join(folder, 'pombal.db-wal')
    const readLog = (at: number, length: number) => readFileSync(log()).subarray(at, at + length)
    const salt = () => readLog(16, 8).toString('hex')
    const commit = async (change: string) => {
      const tx = await backend.begin()
      await run(tx, change)
      await tx.commit()
    }
    const failOnce = () => {
      const working = syncFile
      syncFile = () => {
        syncFile = working
        return Promise.reject(new Error('the disk is gone'))
      }
    }
    const rowsOf = (file: string) => {
      const db = new Sqlite(file)
      try {
        expect(db.pragma('integrity_check', { simple: true })).toBe('ok')
        return db.prepare('select x from t').pluck().all()
      } finally {
        db.close()
      }
    }
    beforeEach(async () => {
      await commit('create table t (x)')
      await commit('insert into t values (1)')
    })

    test('the next commit begins when the log is written again, synced, written back and empty', async () => {
      const before = salt()
      failOnce()
      await expect(commit('insert into t values (2)')).rejects.toThrow('the disk is gone')
      await expect(backend.untilSynced()).rejects.toThrow('the disk is gone')
      const whole = statSync(log()).size
      const sizes: number[] = []
      const working = syncFile
      syncFile = async descriptor => {
        sizes.push(fstatSync(descriptor).size)
        await working(descriptor)
      }
      await commit('insert into t values (3)')
      await backend.untilSynced()
      expect(salt()).not.toBe(before)
      expect(sizes).toEqual([whole, statSync(log()).size])
      expect(statSync(log()).size).toBeLessThan(whole)
      // Whatever becomes of the log, the former commits are in the database.
      copyFileSync(join(folder, 'pombal.db'), join(folder, 'copy.db'))
      expect(rowsOf(join(folder, 'copy.db'))).toEqual([1, 2])
      expect(await run(backend.reader, 'select count(*) as n from t')).toEqual([{ n: 3 }])
    })

    test('no commit begins, synced or not, while the log cannot be synced or written back', async () => {
      const working = syncFile
      syncFile = () => Promise.reject(new Error('the disk is gone'))
      await expect(commit('insert into t values (2)')).rejects.toThrow('the disk is gone')
      await expect(backend.begin()).rejects.toThrow(StoreUnavailable)
      syncFile = working
      const other = new Sqlite(join(folder, 'pombal.db'), { readonly: true })
      other.exec('begin')
      other.prepare('select * from t').all()
      const before = salt()
      await expect(backend.begin()).rejects.toThrow(StoreUnavailable)
      await expect(backend.eraseTraces()).rejects.toThrow(StoreUnavailable)
      expect(salt()).toBe(before)
      other.close()
      await commit('insert into t values (3)')
      expect(salt()).not.toBe(before)
    })

    test('no commit begins if the log has lost what was written; a restart goes back to the last commit', async () => {
      const { size } = statSync(log())
      failOnce()
      await expect(commit('insert into t values (2)')).rejects.toThrow('the disk is gone')
      // The file system gives back what was there before.
      const added = statSync(log()).size - size
      expect(added).toBeGreaterThan(0)
      const file = openSync(log(), 'r+')
      writeSync(file, Buffer.alloc(added), 0, added, size)
      closeSync(file)
      for (let count = 0; count < 2; count += 1) {
        const error = await backend.begin().catch(caught => caught)
        expect(error).toBeInstanceOf(StoreUnavailable)
        expect(error.cause.message).toContain('Restart Pombal')
      }
      // A kill: only the files are left.
      for (const suffix of ['', '-wal'])
        copyFileSync(join(folder, `pombal.db${suffix}`), join(folder, `copy.db${suffix}`))
      expect(rowsOf(join(folder, 'copy.db'))).toEqual([1])
    })

    test('a log of many frames is written again as it was', async () => {
      await commit('insert into t values (randomblob(3000000))')
      const before = readFileSync(log())
      const index = openSync(join(folder, 'pombal.db-shm'), 'r')
      const descriptor = openSync(log(), 'r+')
      expect(rewriteLog(descriptor, index)).toBeGreaterThan(3_000_000 / 2_048)
      expect(readFileSync(log()).equals(before)).toBe(true)
      writeSync(descriptor, Buffer.from([before[2_000_000]! ^ 1]), 0, 1, 2_000_000)
      expect(() => rewriteLog(descriptor, index)).toThrow(LogDamaged)
      writeSync(descriptor, Buffer.from([before[2_000_000]!]), 0, 1, 2_000_000)
    })
  })

  test('a log that cannot be synced fails the commit', async () => {
    syncFile = () => Promise.reject(new Error('the disk is gone'))
    const tx = await backend.begin()
    await run(tx, 'create table t (x)')
    await expect(tx.commit()).rejects.toThrow('the disk is gone')
    await tx.rollback()
  })

  test('the log stays the same file across checkpoints', async () => {
    const fill = async () => {
      const tx = await backend.begin()
      await run(tx, 'create table if not exists t (x)')
      await run(tx, 'insert into t values (randomblob(100000))')
      await tx.commit()
    }
    const { ino } = statSync(join(folder, 'pombal.db-wal'))
    await fill()
    const other = new Sqlite(join(folder, 'pombal.db'))
    other.pragma('wal_checkpoint(truncate)')
    other.close()
    await fill()
    expect(statSync(join(folder, 'pombal.db-wal')).ino).toBe(ino)
  })

  test.each([
    { of: 'a new database', pageBytes: undefined, expected: 2_048 },
    { of: 'a database with larger pages', pageBytes: 4_096, expected: 4_096 },
  ])('the log of $of is written back at 64 MiB', ({ pageBytes, expected }) => {
    const file = join(folder, 'other.db')
    if (pageBytes !== undefined) {
      const former = new Sqlite(file)
      former.exec(`pragma page_size = ${pageBytes}; create table t (x)`)
      former.close()
    }
    const db = openSqlite(file)
    try {
      db.exec('create table if not exists t (x)')
      expect(db.pragma('page_size', { simple: true })).toBe(expected)
      expect(Number(db.pragma('wal_autocheckpoint', { simple: true })) * expected).toBe(64 * 1024 * 1024)
    } finally {
      db.close()
    }
  })

  test('a full disk is classified as unavailable and leaves the store usable', async () => {
    const first = await backend.begin()
    await run(first, 'create table t (x blob)')
    await first.commit()
    const second = await backend.begin()
    await run(second, 'pragma max_page_count = 10')
    const error = await run(second, 'insert into t values (randomblob(1000000))').catch(caught => caught)
    expect(backend.classify(error)).toBe('unavailable')
    await second.rollback()
    const third = await backend.begin()
    await run(third, 'insert into t values (1)')
    await third.commit()
    expect(await run(backend.reader, 'select count(*) as count from t')).toEqual([{ count: 1 }])
  })

  test('a violated constraint affects its unit only', async () => {
    const tx = await backend.begin()
    await run(tx, 'create table t (x integer unique)')
    await run(tx, 'insert into t values (1)')
    const error = await run(tx, 'insert into t values (1)').catch(caught => caught)
    expect(backend.classify(error)).toBe('unit')
    await tx.rollback()
  })

  test('waiting for a lock of another connection does not block the event loop', async () => {
    const other = new Sqlite(join(folder, 'pombal.db'))
    other.exec('begin immediate')
    const loop = monitorEventLoopDelay({ resolution: 5 })
    loop.enable()
    let begun = false
    const attempts = vi.spyOn(Object.getPrototypeOf(other.prepare('begin')), 'run')
    const transaction = backend.begin().then(tx => {
      begun = true
      return tx
    })
    await vi.waitFor(() => expect(attempts.mock.calls.length).toBeGreaterThan(5), CONDITION_WITHIN_MS)
    attempts.mockRestore()
    loop.disable()
    expect(begun).toBe(false)
    expect(loop.max / 1e6).toBeLessThan(2_000)
    other.exec('rollback')
    other.close()
    await (await transaction).rollback()
  })

  test('readers see committed data only, and cannot write', async () => {
    const tx = await backend.begin()
    await run(tx, 'create table t (x)')
    await expect(run(backend.reader, 'select * from t')).rejects.toThrow('no such table')
    await tx.commit()
    expect(await run(backend.reader, 'select * from t')).toEqual([])
    await expect(run(backend.reader, 'insert into t values (1)')).rejects.toThrow('readonly')
  })
})
