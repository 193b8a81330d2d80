import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Service } from '../../service.ts'

const PROGRAM = join(import.meta.dirname, '../../../bin/pombal.js')
const NEWEST_STEP = '0154-makers-of-links'
/** The newest migration has not been applied: its columns and its name are missing. */
const DOWNGRADE = `alter table accounts drop invited_by; alter table handouts drop created_by; delete from kysely_migration where name >= '${NEWEST_STEP}'`

let dataDir: string
let service: Service
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'pombal-upgrade-'))
})
afterEach(async () => {
  await service.dispose()
  rmSync(dataDir, { recursive: true, force: true })
})

const folder = () => join(dataDir, 'backups')

function onDatabase<T>(file: string, use: (database: Sqlite.Database) => T): T {
  const database = new Sqlite(file)
  try {
    return use(database)
  } finally {
    database.close()
  }
}

/** Turns the database into one of the previous version. */
function downgrade(): void {
  onDatabase(join(dataDir, 'pombal.db'), database => database.exec(DOWNGRADE))
}

function stepsIn(file: string): string[] {
  return onDatabase(file, db => db.prepare('select name from kysely_migration order by name').pluck().all() as string[])
}

test('before an upgrade the SQLite database is copied, and only the newest copies are kept', async () => {
  service = await new Service({ dataDir, env: { SANDBOX: 'on', UPGRADE_BACKUPS: '2' } }).start()
  const { id } = await service.admin.createConnected()
  await service.restart()
  // Neither the first start nor one of the same version is an upgrade.
  expect(readdirSync(dataDir)).not.toContain('backups')
  const seen: string[] = []
  for (let upgrades = 0; upgrades < 3; upgrades += 1) {
    await service.kill('SIGTERM')
    downgrade()
    // The partial copy of a start that was killed in the middle, and a file of somebody else.
    mkdirSync(folder(), { recursive: true })
    writeFileSync(join(folder(), 'before-upgrade-2000-01-01T00-00-00.db.partial'), '')
    writeFileSync(join(folder(), 'mine.db'), '')
    await service.start()
    const copies = readdirSync(folder()).filter(name => name.startsWith('before-upgrade-'))
    seen.push(copies.at(-1)!)
    expect(copies).toEqual(seen.slice(-2))
  }
  const newest = join(folder(), seen.at(-1)!)
  expect(stepsIn(newest)).not.toContain(NEWEST_STEP)
  expect(stepsIn(join(dataDir, 'pombal.db'))).toContain(NEWEST_STEP)
  expect(onDatabase(newest, database => database.prepare('select id from instances').pluck().all())).toEqual([id])
  expect(statSync(newest).mode & 0o777).toBe(0o600)
  expect(readdirSync(folder())).toContain('mine.db')
  expect(service.logLines.findLast(({ msg }) => msg === 'store.upgrading')).toMatchObject({
    steps: [NEWEST_STEP],
    backup: newest,
  })
  await service.kill('SIGTERM')
  execFileSync(process.execPath, [PROGRAM, 'restore', newest], {
    env: { PATH: process.env['PATH'], DATA_DIR: dataDir },
  })
  expect(stepsIn(join(dataDir, 'pombal.db'))).not.toContain(NEWEST_STEP)
})

test('an upgrade that fails at each start makes one copy, and erases none before it succeeds', async () => {
  service = await new Service({ dataDir, env: { UPGRADE_BACKUPS: '1' } }).start()
  await service.kill('SIGTERM')
  // The migration fails: the index that it creates exists already.
  onDatabase(join(dataDir, 'pombal.db'), database =>
    database.exec(`delete from kysely_migration where name >= '${NEWEST_STEP}'`),
  )
  mkdirSync(folder())
  const former = 'before-upgrade-2000-01-01T00-00-00.db'
  writeFileSync(join(folder(), former), '')
  for (let starts = 0; starts < 3; starts += 1) {
    service.boot()
    expect((await service.exited()).code).toBe(1)
    expect(readdirSync(folder())).toEqual([former, expect.any(String)])
  }
  const [, failed] = readdirSync(folder())
  downgrade()
  await service.start()
  const [copy, ...more] = readdirSync(folder())
  expect(more).toEqual([])
  // The database has changed since the first copy.
  expect([former, failed]).not.toContain(copy)
})

test('a copy that was made by a clock that was ahead does not displace that of the next upgrade', async () => {
  service = await new Service({ dataDir, env: { UPGRADE_BACKUPS: '2' } }).start()
  await service.kill('SIGTERM')
  downgrade()
  mkdirSync(folder())
  const ahead = ['before-upgrade-2098-01-01T00-00-00.db', 'before-upgrade-2099-01-01T00-00-00.db']
  for (const name of ahead) writeFileSync(join(folder(), name), '')
  await service.start()
  const { backup } = service.logLines.findLast(({ msg }) => msg === 'store.upgrading') as unknown as { backup: string }
  expect(readdirSync(folder())).toEqual([basename(backup), ahead[1]])
  expect(stepsIn(backup)).not.toContain(NEWEST_STEP)
})

test('without room for the copy nothing is upgraded, and UPGRADE_BACKUPS=0 makes none', async () => {
  service = await new Service({ dataDir, env: {} }).start()
  await service.kill('SIGTERM')
  downgrade()
  writeFileSync(folder(), 'a file, so there can be no folder')
  service.boot()
  expect((await service.exited()).code).toBe(1)
  expect(service.output).toContain('The database was not upgraded')
  expect(stepsIn(join(dataDir, 'pombal.db'))).not.toContain(NEWEST_STEP)
  service = await new Service({ dataDir, env: { UPGRADE_BACKUPS: '0' } }).start()
  expect(stepsIn(join(dataDir, 'pombal.db'))).toContain(NEWEST_STEP)
})
