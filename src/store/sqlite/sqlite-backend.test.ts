import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Session } from '../session.ts'
import { Statements } from '../statement.ts'
import { SqliteBackend } from './sqlite-backend.ts'

describe('the SQLite backend', () => {
  const { db } = new Statements('sqlite')
  let folder: string
  let backend: SqliteBackend

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'pombal-sqlite-'))
    backend = new SqliteBackend(join(folder, 'pombal.db'))
  })
  afterEach(async () => {
    await backend.close()
    rmSync(folder, { recursive: true, force: true })
  })

  const run = (session: Session, text: string) =>
    session.query<Record<string, unknown>>({
      compile: () => sql<Record<string, unknown>>`${sql.raw(text)}`.compile(db),
    })

  test('a commit is synced to the disk before it is told', async () => {
    const tx = await backend.begin()
    expect(await run(tx, 'pragma synchronous')).toEqual([{ synchronous: 2 }])
    expect(await run(tx, 'pragma journal_mode')).toEqual([{ journal_mode: 'wal' }])
    await tx.rollback()
  })

  test('a full disk is told as unavailable, and leaves the store usable', async () => {
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

  test('a broken rule concerns its unit only', async () => {
    const tx = await backend.begin()
    await run(tx, 'create table t (x integer unique)')
    await run(tx, 'insert into t values (1)')
    const error = await run(tx, 'insert into t values (1)').catch(caught => caught)
    expect(backend.classify(error)).toBe('unit')
    await tx.rollback()
  })

  test('readers see nothing that is not committed, and cannot write', async () => {
    const tx = await backend.begin()
    await run(tx, 'create table t (x)')
    await expect(run(backend.reader, 'select * from t')).rejects.toThrow('no such table')
    await tx.commit()
    expect(await run(backend.reader, 'select * from t')).toEqual([])
    await expect(run(backend.reader, 'insert into t values (1)')).rejects.toThrow('readonly')
  })
})
