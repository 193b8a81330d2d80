import { randomBytes } from 'node:crypto'
import { cpSync, existsSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { newInstanceId } from '../../../../src/domain/ids.ts'
import { openStore } from '../../../../src/store/open-store.ts'
import type { Store } from '../../../../src/store/store.ts'
import { runCommand } from '../../../sessions/run-command.ts'

const KILL_AT = join(import.meta.dirname, 'kill-at.js')
const MOST_STEPS = 100
const masterKey = randomBytes(32)

const folder = mkdtempSync(join(tmpdir(), 'pombal-restore-'))
/** A data folder as a kill leaves it: the write-ahead log has commits that the database file does not have. */
const killed = join(folder, 'killed')
const backups = join(folder, 'backups')
/** It has the first instance only. */
let backup: string
let dataDir: string

const open = (path = dataDir) => openStore({ dataDir: path, masterKey, ratePerMinute: 100 })
const run = (args: readonly string[], env: Record<string, string> = {}) =>
  runCommand(args, { DATA_DIR: dataDir, MASTER_KEY: masterKey.toString('base64'), ...env })
const file = (suffix = '') => join(dataDir, `pombal.db${suffix}`)
const kept = () => readdirSync(dataDir).filter(name => name.includes('.before-'))

async function addInstance(store: Store, name: string): Promise<void> {
  const secrets = { tokenDigest: randomBytes(32), webhookSecret: `whsec_${randomBytes(32).toString('base64')}` }
  await store.instances.create({ id: newInstanceId(), name, kind: 'whatsapp', goal: 'idle', ...secrets }, 0)
}

function namesIn(path: string): string[] {
  const database = new Sqlite(path)
  try {
    expect(database.pragma('integrity_check', { simple: true })).toBe('ok')
    return database.prepare('select name from instances order by name').pluck().all() as string[]
  } finally {
    database.close()
  }
}

/** Starts the service's store once. @returns the instances, or why it does not start */
async function start(): Promise<string[] | Error> {
  try {
    await (await open()).close()
  } catch (error) {
    return error as Error
  }
  return namesIn(file())
}

beforeAll(async () => {
  const origin = join(folder, 'origin')
  const store = await open(origin)
  await addInstance(store, 'first')
  dataDir = origin
  expect(await run(['backup', backups])).toMatchObject({ code: 0 })
  backup = join(backups, readdirSync(backups)[0]!)
  await addInstance(store, 'second')
  cpSync(origin, killed, { recursive: true })
  await store.close()
})
afterAll(() => rmSync(folder, { recursive: true }))
beforeEach(() => {
  dataDir = mkdtempSync(join(folder, 'data-'))
  cpSync(killed, dataDir, { recursive: true })
})

describe('pombal restore', () => {
  test('the former database is kept with what was only in its log', async () => {
    expect(await run(['restore', backup])).toMatchObject({ code: 0 })
    expect(await start()).toEqual(['first'])
    expect(kept()).toHaveLength(1)
    expect(namesIn(join(dataDir, kept()[0]!))).toEqual(['first', 'second'])
  })

  test('no backup is made during a rotation of the master key; a restore of such a backup names both keys', async () => {
    const begin = (path: string) => {
      const database = new Sqlite(path)
      database.exec("insert into meta values ('key_rotation', x'00')")
      database.close()
    }
    begin(file())
    const into = join(dataDir, 'backups')
    const refused = await run(['backup', into])
    expect(refused).toMatchObject({ code: 1, output: expect.stringContaining('A rotation of the master key is not') })
    expect(readdirSync(into)).toEqual([])

    const rotating = join(dataDir, 'rotating.db')
    cpSync(backup, rotating)
    begin(rotating)
    const { code, output } = await run(['restore', rotating])
    expect(code, output).toBe(0)
    expect(output).toMatch(/needs two keys.*master\.key .*master\.key\.next.*rotate-keys/)
  })

  test('a write-ahead log that is left without its database does not change the restored one', async () => {
    renameSync(file(), join(dataDir, 'bad.db'))
    expect(existsSync(file('-wal'))).toBe(true)
    const { output } = await run(['restore', backup])
    expect(namesIn(file())).toEqual(['first'])
    expect(await start()).toEqual(['first'])
    expect(kept()).toContainEqual(expect.stringMatching(/-wal$/))
    expect(output).toContain(kept().find(name => name.endsWith('-wal')))
  })

  test('a journal that is left without its database does not change the restored one', async () => {
    for (const suffix of ['', '-wal', '-shm']) rmSync(file(suffix))
    const other = join(dataDir, 'other.db')
    cpSync(backup, other)
    const database = new Sqlite(other)
    database.exec('create table filler (bytes blob); pragma cache_size = 1')
    const insert = database.prepare('insert into filler values (randomblob(1000))')
    for (let row = 0; row < 100; row += 1) insert.run()
    database.exec('begin; update filler set bytes = randomblob(1000)')
    cpSync(`${other}-journal`, file('-journal'))
    database.close()
    expect(await run(['restore', backup])).toMatchObject({ code: 0 })
    expect(namesIn(file())).toEqual(['first'])
    expect(kept()).toEqual([expect.stringMatching(/-journal$/)])
  })

  test('while a backup reads the database, nothing is restored', async () => {
    const reader = new Sqlite(file(), { readonly: true })
    reader.exec('begin; select * from instances')
    const refused = await run(['restore', backup])
    reader.close()
    expect(refused).toMatchObject({
      code: 1,
      output: expect.stringContaining('Another program, such as a backup, has opened'),
    })
    expect(await start()).toEqual(['first', 'second'])
  })

  test.each([
    ['an empty file', () => writeFileSync(join(folder, 'wrong.db'), ''), 'contains no data of Pombal'],
    [
      'a database of another program',
      () => new Sqlite(join(folder, 'wrong.db')).exec('create table other (id)').close(),
      'tables of another application',
    ],
    [
      'a backup of a newer version',
      () => {
        cpSync(backup, join(folder, 'wrong.db'))
        new Sqlite(join(folder, 'wrong.db'))
          .exec("insert into kysely_migration (name, timestamp) values ('9999-later', '')")
          .close()
      },
      'written by a newer version',
    ],
  ])('refuses %s, and changes nothing', async (_, make, reason) => {
    rmSync(join(folder, 'wrong.db'), { force: true })
    make()
    const refused = await run(['restore', join(folder, 'wrong.db')])
    expect(refused).toMatchObject({ code: 1, output: expect.stringContaining(reason) })
    expect(await start()).toEqual(['first', 'second'])
    expect(kept()).toEqual([])
  })

  test('says that a folder is not a backup', async () => {
    const refused = await run(['restore', backups])
    expect(refused).toMatchObject({ code: 1, output: expect.stringContaining(`${backups} is a folder`) })
  })

  test.each(['restored', 'former'])(
    'refuses pombal.db.%s, a file of an unfinished restore, and keeps it',
    async name => {
      const left = file(`.${name}`)
      for (const hasDatabase of [true, false]) {
        cpSync(backup, left)
        if (!hasDatabase) for (const suffix of ['', '-wal', '-shm']) rmSync(file(suffix), { force: true })
        const refused = await run(['restore', left])
        expect(refused).toMatchObject({ code: 1, output: expect.stringContaining('rename it first') })
        expect(existsSync(left)).toBe(true)
      }
      renameSync(left, join(dataDir, 'renamed.db'))
      expect(await run(['restore', join(dataDir, 'renamed.db')])).toMatchObject({ code: 0 })
      expect(await start()).toEqual(['first'])
    },
  )

  test('refuses a backup of another master key, and restores it if no master key is given', async () => {
    const refused = await run(['restore', backup], { MASTER_KEY: randomBytes(32).toString('base64') })
    expect(refused).toMatchObject({ code: 1, output: expect.stringContaining('The master key does not match') })
    expect(await start()).toEqual(['first', 'second'])
    const restored = await run(['restore', backup], { MASTER_KEY: '' })
    expect(restored).toMatchObject({ code: 0, output: expect.stringContaining('copy the master key of this backup') })
  })

  /** Kills the command before step 1, then step 2, until a run ends. @param judge checks the state after each kill */
  async function killAtEveryStep(prepare: () => void, judge: () => Promise<void>): Promise<void> {
    for (let step = 1; step < MOST_STEPS; step += 1) {
      rmSync(dataDir, { recursive: true })
      cpSync(killed, dataDir, { recursive: true })
      prepare()
      const options = { NODE_OPTIONS: `--import ${KILL_AT}`, KILL_AT: `${step}` }
      const { code, output } = await run(['restore', backup], options)
      if (code !== null) {
        expect([code, step > 5], output).toEqual([0, true])
        return
      }
      await judge()
      const again = await run(['restore', backup])
      expect([again.code, await start()], again.output).toEqual([0, ['first']])
    }
    throw new Error('It never ended.')
  }

  test('killed at any step, it leaves the former database or the restored one, and loses nothing', async () => {
    await killAtEveryStep(
      () => undefined,
      async () => {
        const names = await start()
        const former = kept().map(name => namesIn(join(dataDir, name)))
        expect([names, former]).toEqual(
          kept().length === 0 ? [['first', 'second'], []] : [['first'], [['first', 'second']]],
        )
      },
    )
  })

  test('killed at any step beside a database that cannot be read, it never leaves an empty installation', async () => {
    await killAtEveryStep(
      () => writeFileSync(file(), 'no database at all'),
      async () => {
        const names = await start()
        if (names instanceof Error) expect(names.message).toMatch(/is damaged|A restore was not finished/)
        else expect(names).toEqual(['first'])
        const doctor = await run(['doctor'])
        if (names instanceof Error) expect(doctor.output).toMatch(/is damaged|A restore was not finished/)
      },
    )
  })
})
