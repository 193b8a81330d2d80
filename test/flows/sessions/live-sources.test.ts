import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '@redis/client'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest'
import { openKeys } from '../../../src/keys.ts'
import { openStore } from '../../../src/store/open-store.ts'
import { createDatabase, type TestDatabase } from '../../databases/database.ts'
import { freePort } from '../../databases/free-port.ts'
import { HAS_MARIADB, startMariadb } from '../../databases/mariadb.ts'
import { queryPostgres } from '../../databases/query-postgres.ts'
import { HAS_REDIS, startRedis } from '../../databases/redis.ts'
import { linkedSession, sessionFiles, withNumberLists, writeFiles } from '../../sessions/linked-session.ts'
import { runCommand } from '../../sessions/run-command.ts'

const PASSWORD = 'a-password-of-the-source'
const AN_HOUR_AGO = Date.now() / 1_000 - 3_600
/** Evolution's tables (from its Prisma schemas), with only the columns that matter. */
const EVOLUTION_TABLES = [
  'create table "Instance" (id text primary key, name varchar(255) not null, "connectionStatus" text)',
  'create table "Session" (id text primary key, "sessionId" text unique references "Instance", creds text)',
  'create table "Webhook" (id text primary key, url varchar(500), enabled boolean default true, "instanceId" text references "Instance")',
]

let folder: string
let dataDir: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pombal-live-'))
  dataDir = mkdtempSync(join(tmpdir(), 'pombal-import-'))
})
afterEach(() => {
  for (const path of [folder, dataDir]) rmSync(path, { recursive: true, force: true })
})

async function run(args: readonly string[], env: Record<string, string>) {
  const { code, output } = await runCommand(['import-sessions', ...args], { DATA_DIR: dataDir, ...env })
  expect(output).not.toContain(PASSWORD)
  return { code, output }
}

interface Imported {
  name: string
  phone: string | null
  state: string
  webhook: string | null
  /** How many credentials and keys it has. */
  rows: number
}

async function imported(): Promise<Imported[]> {
  const keys = openKeys({ dataDir, databaseUrl: null, adminKey: 'unused', masterKey: null })
  const store = await openStore({ dataDir, masterKey: keys.masterKey, ratePerMinute: 100 })
  try {
    const { data } = await store.instances.list({ limit: 100 })
    const found = data.map(async ({ id, name, phone, state }) => {
      const exported = await store.transfers.export(id, Date.now())
      const webhook = (await store.instances.findWebhook(id))?.url ?? null
      return { name, phone, state, webhook, rows: exported.kind === 'exported' ? exported.rows.length : 0 }
    })
    return (await Promise.all(found)).sort((one, other) => one.name.localeCompare(other.name))
  } finally {
    await store.close()
  }
}

/** The files of a session, and its credentials as Evolution's column has them: a JSON string of JSON. */
function sessionOf(phone: string) {
  const files = sessionFiles(linkedSession(phone))
  const creds = JSON.stringify(files.get('creds.json')!)
  const keys = new Map([...files].filter(([name]) => name !== 'creds.json'))
  return { files, creds, keys }
}

/** Writes the keys as Evolution does without Redis, in files that were last changed an hour ago. */
function writeKeys(id: string, keys: ReadonlyMap<string, string>): void {
  writeFiles(join(folder, id), keys)
  for (const name of keys.keys()) utimesSync(join(folder, id, name), AN_HOUR_AGO, AN_HOUR_AGO)
}

const SHOP = { name: 'Shop', phone: '5511900000001', state: 'stopped', webhook: 'https://shop.example/hook' }
const BAKERY = { name: 'Bakery', phone: '5511900000002', state: 'stopped', webhook: null }
/** Evolution does not post to it. */
const SWITCHED_OFF = 'https://bakery.example/off'

describe('on PostgreSQL', () => {
  let database: TestDatabase
  let url: string
  beforeEach(async () => {
    database = await createDatabase('postgres', inject('postgresUrl'))
    // The server of the tests asks for no password.
    const address = new URL(database.url!)
    address.password = PASSWORD
    url = address.href
  })
  afterEach(() => database.dispose())

  /** @returns the address for a user that may only read */
  async function createEvolution(schema = 'evolution_api'): Promise<string> {
    const [shop, bakery] = [sessionOf(SHOP.phone), sessionOf(BAKERY.phone)]
    writeKeys('id-1', shop.keys)
    writeKeys('id-2', bakery.keys)
    const reader = `reader_${database.url!.slice(-12)}`
    const quoted = (text: string) => pg.escapeLiteral(text)
    await queryPostgres(
      url,
      [
        `create schema ${schema}`,
        `set search_path to ${schema}`,
        ...EVOLUTION_TABLES,
        `insert into "Instance" values ('id-1', 'Shop', 'open'), ('id-2', 'Bakery', 'close'), ('id-3', 'Never linked', 'close')`,
        `insert into "Session" values ('s1', 'id-1', ${quoted(shop.creds)}), ('s2', 'id-2', ${quoted(bakery.creds)})`,
        `insert into "Webhook" values ('w1', '${SHOP.webhook}', null, 'id-1'), ('w2', '${SWITCHED_OFF}', false, 'id-2')`,
        `create role ${reader} login`,
        `grant usage on schema ${schema} to ${reader}`,
        `grant select on all tables in schema ${schema} to ${reader}`,
      ].join('; '),
    )
    const address = new URL(url)
    address.username = reader
    address.searchParams.set('schema', schema)
    return address.href
  }

  test('Evolution is read with its keys in files, by a user that may only read', async () => {
    const env = { IMPORT_DATABASE_URL: await createEvolution() }
    const args = ['--from', 'evolution', '--keys', folder]
    const dry = await run([...args, '--dry-run'], env)
    expect(dry.code).toBe(0)
    expect(dry.output).toMatch(/Shop +5511900000001 +13 +0 +1 h ago +unknown +https:\/\/shop\.example\/hook\n/)
    expect(dry.output).toMatch(/Bakery .* none\n/)
    expect(dry.output).not.toContain('Never linked')
    expect(readdirSync(dataDir)).toEqual([])
    expect(await run(args, env)).toMatchObject({ code: 0 })
    expect(await imported()).toEqual([
      { ...BAKERY, rows: 14 },
      { ...SHOP, rows: 14 },
    ])
  })

  test.skipIf(!existsSync('/usr/bin/psql'))('the query of docs/migrating.md finds the same rows', async () => {
    const document = readFileSync(join(import.meta.dirname, '../../../docs/migrating.md'), 'utf8')
    const command = /^PGOPTIONS=.*?> evolution\.jsonl$/ms.exec(document)?.[0] ?? 'false'
    const env = { PATH: process.env['PATH'], DATABASE_CONNECTION_URI: await createEvolution() }
    execFileSync('sh', ['-e', '-c', command], { cwd: folder, env })
    const args = ['--dry-run', '--keys', folder, join(folder, 'evolution.jsonl')]
    const { output } = await run(args, {})
    expect(output).toMatch(/Shop +5511900000001 .* https:\/\/shop\.example\/hook\n/)
    expect(output).toMatch(/Bakery +5511900000002 .* none\n/)
  })

  test('while the other program is connected to its database, nothing is imported without a confirmation', async () => {
    const env = { IMPORT_DATABASE_URL: await createEvolution() }
    const evolution = new pg.Client(url)
    await evolution.connect()
    try {
      const args = ['--from', 'evolution', '--keys', folder]
      const dry = await run([...args, '--dry-run'], env)
      expect(dry.output).toContain('maybe: its database has 1 other client')
      const refused = await run(args, env)
      expect(refused).toMatchObject({ code: 1, output: expect.stringContaining('stop the other program for good') })
      expect(readdirSync(dataDir)).toEqual([])
      expect(await run([...args, '--stopped', 'Bakery'], env)).toMatchObject({ code: 0 })
      expect(await imported()).toEqual([{ ...BAKERY, rows: 14 }])
    } finally {
      await evolution.end()
    }
  })

  test('WAHA is read, and one session of it is chosen by name', async () => {
    await queryPostgres(
      url,
      'create table waha_auth (session_id text, key text, value jsonb, primary key (session_id, key))',
    )
    for (const [session, phone] of [
      ['shop', SHOP.phone],
      ['bakery', BAKERY.phone],
    ] as const)
      for (const [file, json] of sessionOf(phone).files) {
        const key = file.slice(0, -'.json'.length)
        const value = pg.escapeLiteral(withNumberLists(json))
        await queryPostgres(url, `insert into waha_auth values ('${session}', ${pg.escapeLiteral(key)}, ${value})`)
      }
    const addressFile = join(folder, 'address')
    writeFileSync(addressFile, `${url}\n`)
    const program = await runCommand(
      ['import-sessions', '--from', 'waha', 'bakery'],
      { DATA_DIR: dataDir, IMPORT_DATABASE_URL_FILE: '/dev/stdin' },
      undefined,
      addressFile,
    )
    expect(program).toMatchObject({ code: 0 })
    expect(await imported()).toEqual([{ ...BAKERY, name: 'bakery', rows: 14 }])
    const unknown = await run(['--from', 'waha', 'butcher'], { IMPORT_DATABASE_URL: url })
    expect(unknown).toMatchObject({ code: 1, output: expect.stringContaining('no session with the name butcher') })
  })

  test('if the database cannot be read or is the wrong one, nothing changes, and the error does not contain its password', async () => {
    const wrong = (change: (address: URL) => void) => {
      const address = new URL(url)
      change(address)
      return { IMPORT_DATABASE_URL: address.href }
    }
    const port = await freePort()
    const cases: [from: string, env: Record<string, string>, sentence: string][] = [
      ['evolution', { IMPORT_DATABASE_URL: url }, 'relation "Session" does not exist'],
      ['waha', { IMPORT_DATABASE_URL: url }, 'relation "waha_auth" does not exist. WAHA may keep each session in'],
      ['evolution', wrong(address => (address.port = String(port))), 'ECONNREFUSED'],
      ['evolution', wrong(address => (address.pathname = '/none')), 'database "none" does not exist'],
      ['evolution', { IMPORT_REDIS_URL: `redis://:${PASSWORD}@127.0.0.1:${port}` }, 'ECONNREFUSED'],
      ['evolution', { IMPORT_DATABASE_URL: `mysql://root:${PASSWORD}@127.0.0.1:${port}/e` }, 'ECONNREFUSED'],
      [
        'evolution',
        { IMPORT_DATABASE_URL: `mongodb://root:${PASSWORD}@127.0.0.1/e` },
        'must be an address of the form',
      ],
      ['evolution', {}, 'Set IMPORT_DATABASE_URL or IMPORT_REDIS_URL'],
      ['waha', { IMPORT_REDIS_URL: `redis://:${PASSWORD}@127.0.0.1:${port}` }, 'PostgreSQL or in files'],
      ['whatsmeow', { IMPORT_DATABASE_URL: url }, '--from must be evolution or waha'],
    ]
    for (const [from, env, sentence] of cases) {
      const refused = await run(['--from', from], env)
      expect(refused).toMatchObject({ code: 1, output: expect.stringContaining(sentence) })
      expect(refused.output).toContain('Nothing was imported')
    }
    const asArgument = await run(['postgresql://user@127.0.0.1/evolution'], {})
    expect(asArgument).toMatchObject({ code: 1, output: expect.stringContaining('arguments of a process') })
    expect(readdirSync(dataDir)).toEqual([])
  })
})

describe.skipIf(!HAS_REDIS)('in Redis (skipped where it is not installed)', () => {
  test('Evolution is read with credentials and keys in Redis, and with names from its other database', async () => {
    const redis = await startRedis(PASSWORD)
    const client = createClient({ url: redis.url })
    const database = await createDatabase('postgres', inject('postgresUrl'))
    try {
      await client.connect()
      const [shop, bakery] = [sessionOf(SHOP.phone), sessionOf(BAKERY.phone)]
      for (const [id, { files }] of [
        ['id-1', shop],
        ['id-2', bakery],
      ] as const)
        for (const [file, json] of files)
          if (id === 'id-1' || file !== 'creds.json')
            await client.hSet(`evolution:instance:${id}`, file.slice(0, -'.json'.length), JSON.stringify(json))
      await client.set('evolution:baileys:id-1', 'no hash')
      const connected = await run(['--from', 'evolution', '--dry-run', 'id-1'], { IMPORT_REDIS_URL: redis.url })
      expect(connected.output).toMatch(/id-1 +5511900000001 +13 +0 +unknown +maybe: its database has 1 other client/)
      client.destroy()
      const quoted = pg.escapeLiteral(bakery.creds)
      const rows = `insert into "Instance" values ('id-1', 'Shop', 'open'), ('id-2', 'Bakery', 'close');
        insert into "Session" values ('s2', 'id-2', ${quoted}); insert into "Webhook" values ('w1', '${SHOP.webhook}', true, 'id-1')`
      await queryPostgres(database.url!, [...EVOLUTION_TABLES, rows].join('; '))
      const env = { IMPORT_REDIS_URL: redis.url, IMPORT_DATABASE_URL: database.url! }
      expect(await run(['--from', 'evolution'], env)).toMatchObject({ code: 0 })
      expect(await imported()).toEqual([
        { ...BAKERY, rows: 14 },
        { ...SHOP, rows: 14 },
      ])
    } finally {
      if (client.isOpen) client.destroy()
      await redis.stop()
      await database.dispose()
    }
  })

  test('a wrong password is refused with a clear error message', async () => {
    const redis = await startRedis('another-password')
    try {
      const url = redis.url.replace('another-password', PASSWORD)
      const refused = await run(['--from', 'evolution'], { IMPORT_REDIS_URL: url })
      expect(refused).toMatchObject({ code: 1, output: expect.stringContaining('cannot be read: WRONGPASS') })
    } finally {
      await redis.stop()
    }
  })
})

describe.skipIf(!HAS_MARIADB)('on MariaDB (skipped where it is not installed)', () => {
  test('Evolution is read by a user that may only read', async () => {
    const mariadb = await startMariadb()
    try {
      const [shop, bakery] = [sessionOf(SHOP.phone), sessionOf(BAKERY.phone)]
      writeKeys('id-1', shop.keys)
      writeKeys('id-2', bakery.keys)
      await mariadb.root.query('create database evolution')
      await mariadb.root.query('use evolution')
      for (const table of [
        'create table Instance (id varchar(191) primary key, name varchar(255) not null)',
        'create table Session (id varchar(191) primary key, sessionId varchar(191) unique, creds text)',
        'create table Webhook (id varchar(191) primary key, url varchar(500), enabled tinyint(1) default 1, instanceId varchar(191))',
        "insert into Instance values ('id-1', 'Shop'), ('id-2', 'Bakery'), ('id-3', 'Never linked')",
      ])
        await mariadb.root.query(table)
      await mariadb.root.query("insert into Session values ('s1', 'id-1', ?), ('s2', 'id-2', ?)", [
        shop.creds,
        bakery.creds,
      ])
      await mariadb.root.query("insert into Webhook values ('w1', ?, null, 'id-1'), ('w2', ?, 0, 'id-2')", [
        SHOP.webhook,
        SWITCHED_OFF,
      ])
      await mariadb.root.query(`create user reader@'%' identified by '${PASSWORD}'`)
      await mariadb.root.query("grant select on evolution.* to reader@'%'")
      const url = (password: string) => `mysql://reader:${password}@127.0.0.1:${mariadb.port}/evolution`
      const args = ['--from', 'evolution', '--keys', folder]
      const refused = await run(args, { IMPORT_DATABASE_URL: url('wrong') })
      expect(refused).toMatchObject({ code: 1, output: expect.stringContaining('cannot be read: Access denied') })
      expect(await run(args, { IMPORT_DATABASE_URL: url(PASSWORD) })).toMatchObject({ code: 0 })
      expect(await imported()).toEqual([
        { ...BAKERY, rows: 14 },
        { ...SHOP, rows: 14 },
      ])
    } finally {
      await mariadb.stop()
    }
  })
})
