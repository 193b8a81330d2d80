import { execFile, execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import Database from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest'
import { createDatabase } from '../../databases/database.ts'
import { queryPostgres } from '../../databases/query-postgres.ts'
import { Service } from '../../service.ts'
import { until } from '../../until.ts'
import { MediaClient, png } from '../media/harness.ts'
import { S3Server } from '../media/s3-server.ts'

const PROGRAM = join(import.meta.dirname, '../../../bin/pombal.js')
const SQLITE = join(import.meta.dirname, '../../../src/store/engine/sqlite')
/** Nothing listens there, and every user may. */
const CLOSED_PORT = '1024'

let folder: string
let service: Service | undefined

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pombal-doctor-'))
})
afterEach(async () => {
  await service?.dispose()
  service = undefined
  rmSync(folder, { recursive: true })
})

function run(
  command: string,
  env: Record<string, string> = {},
  ...more: string[]
): Promise<{ code: number; said: string }> {
  const settings = { PATH: process.env['PATH'], HOST: '127.0.0.1', PORT: CLOSED_PORT, DATA_DIR: folder, ...env }
  return new Promise(resolve => {
    execFile(process.execPath, [PROGRAM, command, ...more], { env: settings }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), said: stdout + stderr }),
    )
  })
}

/** Starts a service. @returns the settings with which the commands use its data folder and port */
async function startService(env: Record<string, string> = {}): Promise<Record<string, string>> {
  service = await new Service({ env }).start()
  return { ...env, DATA_DIR: service.dataDir, PORT: new URL(service.url!).port }
}

describe('pombal doctor', () => {
  test('finds nothing wrong before the first start, and creates nothing', async () => {
    const dataDir = join(folder, 'not', 'yet')
    const { code, said } = await run('doctor', { DATA_DIR: dataDir })
    expect(said).toContain('The first start creates it')
    expect(said).toContain('Nothing keeps Pombal from running.')
    expect(code).toBe(0)
    expect(existsSync(join(folder, 'not'))).toBe(false)
  })

  test.each(['sqlite', 'postgres'] as const)('finds nothing wrong while the service runs on %s', async store => {
    const database = await createDatabase(store, inject('postgresUrl'))
    const { code, said } = await run('doctor', await startService(database.env))
    const warnings = said.split('\n').filter(line => /WARNING|PROBLEM/.test(line))
    // The PostgreSQL of the tests does not sync.
    expect(warnings).toEqual(store === 'sqlite' ? [] : [expect.stringMatching(/fsync is off.*unless the provider/)])
    expect(said).toContain(store === 'sqlite' ? 'SQLite, intact' : 'PostgreSQL, ')
    expect(said).toMatch(/The service at http:\S+ is ready/)
    expect(code).toBe(0)
    await service?.dispose()
    await database.dispose()
  })

  test('names settings that cannot be read or are misspelled', async () => {
    const misspelled = await run('doctor', { RETENTION_DAY: '3' })
    expect(misspelled).toMatchObject({ code: 0, said: expect.stringContaining('did you mean RETENTION_DAYS?') })
    const unreadable = await run('doctor', { RETENTION_DAYS: 'many' })
    expect(unreadable).toMatchObject({ code: 1, said: expect.stringMatching(/PROBLEM\s+Settings\s+RETENTION_DAYS/) })
  })

  test('names a data folder that it cannot write to', async () => {
    const file = join(folder, 'file')
    writeFileSync(file, '')
    const { code, said } = await run('doctor', { DATA_DIR: join(file, 'data') })
    expect(said).toMatch(/PROBLEM\s+Data folder\s+User \S+ cannot write/)
    expect(code).toBe(1)
  })

  test('names a master key that does not match the data, or is missing', async () => {
    const settings = await startService()
    const other = await run('doctor', { ...settings, MASTER_KEY: randomBytes(32).toString('base64') })
    expect(other).toMatchObject({
      code: 1,
      said: expect.stringMatching(/PROBLEM\s+Database\s+The master key does not match/),
    })
    await service?.kill('SIGTERM')
    rmSync(join(settings['DATA_DIR'] as string, 'master.key'))
    const missing = await run('doctor', settings)
    expect(missing).toMatchObject({ code: 1, said: expect.stringMatching(/PROBLEM\s+Master key\s+\S+ is missing/) })
  })

  test('names a damaged database and a clock that is behind the newest event', async () => {
    const settings = await startService({ SANDBOX: 'on' })
    const { id } = await service!.admin.createInstance('sandbox')
    await service!.admin.connect(id)
    await service!.admin.untilState(id, 'connected')
    await service!.kill('SIGTERM')
    const file = join(settings['DATA_DIR'] as string, 'pombal.db')
    const database = new Database(file)
    database.exec(`update events set created_at = created_at + 86400000`)
    database.close()
    expect((await run('doctor', settings)).said).toContain('behind the newest event')
    writeFileSync(file, 'no database at all')
    const damaged = await run('doctor', settings)
    expect(damaged).toMatchObject({ code: 1, said: expect.stringContaining('is damaged or is not an SQLite database') })
  })

  test('the newest event may belong to any instance', async () => {
    const settings = await startService({ SANDBOX: 'on' })
    const busy = await service!.admin.createConnected()
    const quiet = await service!.admin.createConnected()
    const instance = service!.instance(busy.id, busy.token)
    const { id } = await instance.send('5511987654321', 'hello')
    await until('it to be read', async () => (await instance.message(id)).status === 'read')
    await service!.kill('SIGTERM')
    const database = new Database(join(settings['DATA_DIR'] as string, 'pombal.db'))
    database.prepare('update events set created_at = created_at + 86400000 where instance_id = ?').run(quiet.id)
    database.close()
    expect((await run('doctor', settings)).said).toContain('behind the newest event')
  })

  test('names an admin key that others can read, and data that was moved to PostgreSQL', async () => {
    const settings = await startService()
    await service!.kill('SIGTERM')
    const dataDir = settings['DATA_DIR'] as string
    chmodSync(join(dataDir, 'admin.key'), 0o644)
    const open = await run('doctor', settings)
    expect(open).toMatchObject({ code: 1, said: expect.stringMatching(/PROBLEM\s+Admin key\s+\S+ is accessible/) })
    chmodSync(join(dataDir, 'admin.key'), 0o600)
    const marker = { id: 'x', state: 'moved', at: new Date().toISOString() }
    writeFileSync(join(dataDir, 'moved-to-postgres.json'), JSON.stringify(marker))
    const moved = await run('doctor', settings)
    expect(moved).toMatchObject({ code: 1, said: expect.stringMatching(/PROBLEM\s+Database\s+The data was moved/) })
    const backup = await run('backup', settings, join(folder, 'backups'))
    expect(backup).toMatchObject({ code: 1, said: expect.stringContaining('The data was moved to PostgreSQL') })
  })

  test('names a PostgreSQL that is read-only or in which the user may not create tables', async () => {
    const database = await createDatabase('postgres', inject('postgresUrl'))
    const name = new URL(database.url!).pathname.slice(1)
    const alice = `alice_${name}`
    const asAlice = Object.assign(new URL(database.url!), { username: alice }).href
    await database.run(`create role ${alice} login`, '')
    try {
      const refused = await run('doctor', { ...database.env, DATABASE_URL: asAlice })
      expect(refused).toMatchObject({
        code: 1,
        said: expect.stringMatching(/PROBLEM\s+Database\s.*permission denied for schema public.*grant usage, create/),
      })
      await database.run(`alter database ${name} set default_transaction_read_only = on`, '')
      const readOnly = await run('doctor', database.env)
      expect(readOnly).toMatchObject({ code: 1, said: expect.stringMatching(/PROBLEM\s+Database\s.*is read-only/) })
      expect(await database.read("select from pg_class where relnamespace = 'public'::regnamespace", '')).toEqual([])
    } finally {
      await queryPostgres(inject('postgresUrl'), `drop role ${alice}`)
      await database.dispose()
    }
  })

  // For root every file is writable.
  test.skipIf(process.getuid?.() === 0)('names a database that it cannot write to', async () => {
    const settings = await startService()
    await service!.kill('SIGTERM')
    const file = join(settings['DATA_DIR'] as string, 'pombal.db')
    chmodSync(file, 0o400)
    const refused = await run('doctor', settings)
    expect(refused).toMatchObject({
      code: 1,
      said: expect.stringMatching(/PROBLEM\s+Database\s+\S+pombal\.db cannot be opened for writing/),
    })
  })

  test('names a data folder that is a link to nowhere', async () => {
    const link = join(folder, 'link')
    symlinkSync(join(folder, 'nowhere'), link)
    for (const DATA_DIR of [link, join(link, 'data')]) {
      const { code, said } = await run('doctor', { DATA_DIR })
      expect(said).toMatch(/PROBLEM\s+Data folder\s+\S+link is a link that leads nowhere/)
      expect(code).toBe(1)
    }
    expect(existsSync(join(folder, 'nowhere'))).toBe(false)
  })

  test('names a port of the metrics that another program uses, but not that of the service itself', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const METRICS_PORT = `${(other.address() as AddressInfo).port}`
    try {
      const { code, said } = await run('doctor', { METRICS_PORT })
      expect(said).toMatch(/PROBLEM\s+Service\s+Another program uses port \d+ of 127.0.0.1: set METRICS_PORT/)
      expect(code).toBe(1)
    } finally {
      other.close()
    }
    const own = await run('doctor', await startService({ METRICS_PORT }))
    expect(own).toMatchObject({ code: 0, said: expect.stringContaining('is ready') })
  })

  test('names a PostgreSQL that cannot be reached', async () => {
    const { code, said } = await run('doctor', {
      DATABASE_URL: 'postgres://alice:secret@127.0.0.1:1/pombal',
      ADMIN_KEY: randomBytes(32).toString('hex'),
      MASTER_KEY: randomBytes(32).toString('base64'),
    })
    expect(said).toMatch(/PROBLEM\s+Database\s+PostgreSQL at 127.0.0.1:1 cannot be reached/)
    expect(said).not.toContain('secret')
    expect(code).toBe(1)
  })

  test('names a storage of files that cannot be used', async () => {
    const server = await new S3Server().listen()
    const bucket = (url: string) => ({
      MEDIA_URL: `s3://media/pombal?endpoint=${url}&region=eu-west-1`,
      AWS_ACCESS_KEY_ID: 'key',
      AWS_SECRET_ACCESS_KEY: 'not-to-be-shown',
    })
    try {
      const found = await run('doctor', bucket(server.url))
      expect(found).toMatchObject({ code: 0, said: expect.stringMatching(/ok\s+Files\s+The bucket media at/i) })
      server.fails = () => true
      const refused = await run('doctor', bucket(server.url))
      expect(refused).toMatchObject({ code: 1, said: expect.stringMatching(/PROBLEM\s+Files\s.*AccessDenied/) })
      expect([server.objects.size, server.uploads.size]).toEqual([0, 0])
    } finally {
      await server.close()
    }
    const away = await run('doctor', bucket('http://127.0.0.1:1'))
    expect(away).toMatchObject({ code: 1, said: expect.stringMatching(/PROBLEM\s+Files\s.*ECONNREFUSED/) })
    expect(away.said).not.toContain('not-to-be-shown')
    const file = join(folder, 'file')
    writeFileSync(file, '')
    const under = await run('doctor', { MEDIA_URL: pathToFileURL(join(file, 'media')).href })
    expect(under).toMatchObject({ code: 1, said: expect.stringMatching(/PROBLEM\s+Files\s.*ENOTDIR/) })
  })

  test('names stored files without MEDIA_URL, and a folder that does not have them', async () => {
    const media = join(folder, 'media')
    const database = await createDatabase('postgres', inject('postgresUrl'))
    const settings = await startService({ ...database.env, MEDIA_URL: pathToFileURL(media).href })
    const client = new MediaClient(service!.url!, await service!.admin.createInstance('whatsapp'))
    expect((await client.upload(png(1_000))).status).toBe(201)
    await service!.kill('SIGTERM')
    const filesOf = async (env: Record<string, string>) => {
      const { code, said } = await run('doctor', env)
      return `${code} ${/^.*Files.*$/m.exec(said)?.[0]}`
    }
    try {
      expect(await filesOf(settings)).toMatch(/^0 ok/)
      expect(await filesOf({ ...settings, MEDIA_URL: '' })).toMatch(/^1 PROBLEM.* MEDIA_URL is not set/)
      renameSync(media, `${media}.away`)
      mkdirSync(join(media, 'lost+found'), { recursive: true })
      expect(await filesOf(settings)).toMatch(/^1 PROBLEM.* has none: mount or restore it/)
      mkdirSync(join(media, 'inst_other'))
      expect(await filesOf(settings)).toMatch(/^1 PROBLEM.* is not the folder of the stored files/)
      expect(readdirSync(media).sort()).toEqual(['inst_other', 'lost+found'])
    } finally {
      await database.dispose()
    }
  })

  test('names a HOST that is no address of this machine', async () => {
    const { code, said } = await run('doctor', { HOST: '192.0.2.1' })
    expect(said).toMatch(/PROBLEM\s+Service\s+192.0.2.1 is not an address of this machine: set HOST/)
    expect(code).toBe(1)
  })

  test('names another program that uses the port', async () => {
    const other = createServer((_, response) => response.end('hello')).listen(0, '127.0.0.1')
    const PORT = await new Promise<string>(resolve =>
      other.on('listening', () => resolve(`${(other.address() as AddressInfo).port}`)),
    )
    try {
      const { code, said } = await run('doctor', { PORT })
      expect(said).toMatch(/PROBLEM\s+Service\s+Another program uses/)
      expect(code).toBe(1)
    } finally {
      other.close()
    }
  })
})

describe('pombal healthcheck', () => {
  test('exits with 0 while the service is ready, and with 1 and the reason when it is not', async () => {
    const settings = await startService()
    expect(await run('healthcheck', settings)).toMatchObject({ code: 0, said: expect.stringContaining('is ready') })
    await service!.kill('SIGTERM')
    const stopped = await run('healthcheck', settings)
    expect(stopped).toMatchObject({ code: 1, said: expect.stringContaining('No service answers') })
  })
})

describe('pombal vacuum', () => {
  test('gives the space of erased rows back while the service is stopped, and only then', async () => {
    const settings = await startService()
    const refused = await run('vacuum', settings)
    expect(refused).toMatchObject({ code: 1, said: expect.stringContaining('Another process uses') })
    await service!.kill('SIGTERM')
    const file = join(settings['DATA_DIR'] as string, 'pombal.db')
    const database = new Database(file)
    database.exec('create table filler (bytes blob)')
    database.exec('insert into filler values (randomblob(20000000))')
    database.exec('drop table filler')
    database.close()
    const before = statSync(file).size
    expect(await run('vacuum', settings)).toMatchObject({ code: 0, said: expect.stringContaining('MB before') })
    expect(statSync(file).size).toBeLessThan(before / 2)
    await service!.start()
  })

  test.skipIf(process.platform !== 'linux')('its temporary files are in the data folder', () => {
    const source = (name: string) => JSON.stringify(join(SQLITE, name))
    const script = `
      import { readdirSync, readlinkSync } from 'node:fs'
      import { lockDataDir } from ${source('data-dir-lock.ts')}
      import { openSqlite } from ${source('sqlite-backend.ts')}
      lockDataDir(process.env.DATA_DIR)
      const database = openSqlite(process.env.DATA_DIR + '/pombal.db')
      database.exec('create temp table large (bytes blob); insert into large values (zeroblob(50000000))')
      for (const name of readdirSync('/proc/self/fd')) try { console.log(readlinkSync('/proc/self/fd/' + name)) } catch {}`
    const env = { PATH: process.env['PATH'], DATA_DIR: folder }
    const opened = execFileSync(process.execPath, ['--input-type=module', '-e', script], { env, encoding: 'utf8' })
    // It has no name any more: a kill leaves nothing.
    expect(opened).toMatch(new RegExp(`^${folder}/.+ \\(deleted\\)$`, 'm'))
  })

  test('says so if there is nothing to vacuum', async () => {
    expect(await run('vacuum')).toMatchObject({ code: 1, said: expect.stringContaining('does not exist') })
  })
})
