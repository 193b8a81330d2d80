import { randomBytes } from 'node:crypto'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { openStore } from '../../../src/store/open-store.ts'
import { createCertificate } from '../../certificate.ts'
import { startOldTlsServer } from '../../databases/old-tls.ts'
import { HAS_PGBOUNCER, startPgBouncer } from '../../databases/pgbouncer.ts'
import { type PostgresServer, startPostgres } from '../../databases/postgres.ts'
import { queryPostgres } from '../../databases/query-postgres.ts'
import { Service } from '../../service.ts'
import { runCommand } from '../../sessions/run-command.ts'
import { until } from '../../until.ts'

const PROGRAM = join(import.meta.dirname, '../../../bin/pombal.js')
/** Nothing listens there. */
const CLOSED_PORT = '1'
const PASSWORD = 'confidential-password'

let server: PostgresServer
let databaseUrl: string
let service: Service | undefined
const cleanUps: (() => unknown)[] = []

beforeAll(async () => {
  server = await startPostgres()
  databaseUrl = await server.createDatabase()
  await queryPostgres(server.url, `create role alice login password '${PASSWORD}'`)
  await queryPostgres(server.url, 'create role carol login')
  const [file] = await queryPostgres<{ hba_file: string }>(server.url, 'show hba_file')
  const rules = ['host all postgres all trust', 'host all alice all scram-sha-256', 'hostssl all carol all trust']
  const rows = rules.map(rule => `('${rule}')`).join()
  await queryPostgres(server.url, `copy (values ${rows}) to '${file?.hba_file}'`)
  await queryPostgres(server.url, 'select pg_reload_conf()')
})
afterAll(() => server.stop())
afterEach(async () => {
  await service?.dispose()
  service = undefined
  for (const cleanUp of cleanUps.splice(0)) await cleanUp()
})

function settingsFor(url: string): Record<string, string> {
  return {
    DATABASE_URL: url,
    ADMIN_KEY: randomBytes(32).toString('hex'),
    MASTER_KEY: randomBytes(32).toString('base64'),
    SANDBOX: 'on',
  }
}

function serviceOn(url: string): Service {
  service = new Service({ env: settingsFor(url) })
  return service
}

/** The one sentence that a failed start prints. */
async function startInVain(url: string): Promise<string> {
  const vain = serviceOn(url)
  vain.boot()
  const { code } = await vain.exited()
  expect(code).toBe(1)
  expect(vain.output).toMatch(/^Pombal cannot start:\n {2}- .+\.( \(\w{5}\))?\n$/m)
  expect(vain.output).not.toMatch(/ {4}at |confidential/)
  return vain.output
}

/** What a command prints that fails. */
async function runInVain(command: string, url: string): Promise<string> {
  const NEW_MASTER_KEY = randomBytes(32).toString('base64')
  const { code, output } = await runCommand([command], { PORT: CLOSED_PORT, ...settingsFor(url), NEW_MASTER_KEY })
  expect(code).toBe(1)
  return output
}

function urlWith(changes: Partial<Pick<URL, 'username' | 'password' | 'pathname' | 'host' | 'search'>>): string {
  return Object.assign(new URL(databaseUrl), changes).href
}

async function expectItWorks(running: Service): Promise<void> {
  const { id, token } = await running.admin.createConnected()
  const { id: messageId } = await running.instance(id, token).send('5511987654321', 'hello')
  const status = async () => (await running.instance(id, token).message(messageId)).status
  await until('it to be read', async () => (await status()) === 'read')
}

/** A proxy in front of the server that changes the version which the server reports. */
async function startOldServer(): Promise<string> {
  const { port, hostname } = new URL(databaseUrl)
  const proxy: Server = createServer(client => {
    const upstream = connect(Number(port), hostname)
    client.pipe(upstream)
    upstream.on('data', bytes => {
      const text = bytes.toString('latin1').replaceAll(/(?<=\D)1[5-9]00(\d\d)(?=\D)/g, '1300$1')
      client.write(Buffer.from(text, 'latin1'))
    })
    for (const socket of [client, upstream]) {
      socket.on('error', () => socket.destroy()).on('close', () => [client, upstream].map(one => one.destroy()))
    }
  })
  await new Promise<void>(resolve => proxy.listen(0, '127.0.0.1', resolve))
  cleanUps.push(() => proxy.close())
  return `127.0.0.1:${(proxy.address() as AddressInfo).port}`
}

describe('a failed start on PostgreSQL names the address, the reason and the remedy', () => {
  test.each([
    [
      'a wrong password',
      () => urlWith({ username: 'alice', password: 'confidential-guess' }),
      /password of user "alice"/,
    ],
    ['an unknown user', () => urlWith({ username: 'nobody' }), /pg_hba\.conf/],
    ['a server that asks for encryption', () => urlWith({ username: 'carol' }), /sslmode=require/],
    ['an unknown database', () => urlWith({ pathname: '/nowhere' }), /no database "nowhere"\. Create it/],
    [
      'no right on the schema',
      () => urlWith({ username: 'alice', password: PASSWORD }),
      /grant usage, create on schema public to "alice"/,
    ],
    ['an unknown host', () => urlWith({ host: 'nowhere.invalid:5432' }), /nowhere\.invalid is unknown/],
    ['a port where nobody listens', () => urlWith({ host: '127.0.0.1:1' }), /127\.0\.0\.1:1 .*nothing listens there/],
    ['TLS, which the server does not have', () => urlWith({ search: '?sslmode=verify-full' }), /refuses TLS/],
  ])('%s', async (_, url, sentence) => {
    const output = await startInVain(url())
    expect(output).toMatch(sentence)
    expect(output).toContain(new URL(url()).host)
  })

  test('a server whose TLS is too old', async () => {
    const old = await startOldTlsServer(createCertificate())
    cleanUps.push(() => old.stop())
    const output = await startInVain(urlWith({ host: old.host, search: '?sslmode=verify-full' }))
    expect(output).toMatch(/offers only versions of TLS before 1\.2/)
  })

  test('a server that is too old', async () => {
    const output = await startInVain(urlWith({ host: await startOldServer() }))
    expect(output).toMatch(/is version 13: Pombal needs 15 or later/)
  })

  test('tables of another user, as after a restore', async () => {
    const url = await server.createDatabase()
    const store = await openStore({ databaseUrl: url, dataDir: '', masterKey: randomBytes(32), ratePerMinute: 100 })
    await store.close()
    await queryPostgres(url, 'grant usage, create on schema public to alice')
    const asAlice = Object.assign(new URL(url), { username: 'alice', password: PASSWORD })
    expect(await startInVain(asAlice.href)).toMatch(/make "alice" their owner, or restore .* --no-owner --role=alice/)
  })

  test('a read-only server', async () => {
    const url = await server.createDatabase()
    const name = new URL(url).pathname.slice(1)
    await queryPostgres(server.url, `alter database ${name} set default_transaction_read_only = on`)
    expect(await startInVain(url)).toMatch(/is read-only/)
  })

  test('a database whose encoding has no emoji, also in "pombal doctor" and "pombal rotate-keys"', async () => {
    const latin = 'latin'
    await queryPostgres(server.url, `create database ${latin} encoding LATIN1 template template0`)
    const url = urlWith({ pathname: `/${latin}` })
    const sentence = /database "latin" .* has the encoding LATIN1\. Create one with the encoding UTF8 /
    expect(await startInVain(url)).toMatch(sentence)
    for (const command of ['doctor', 'rotate-keys']) expect(await runInVain(command, url)).toMatch(sentence)
    expect(
      await queryPostgres(url, 'select from pg_class where relnamespace = current_schema()::regnamespace'),
    ).toEqual([])
  })
})

test('a node without a sandbox needs no folder that it may write to', async () => {
  const url = await server.createDatabase()
  // A folder in a file cannot be created.
  const env = { ...settingsFor(url), SANDBOX: 'off', DATA_DIR: join(PROGRAM, 'data') }
  const examined = await runCommand(['doctor'], { PORT: CLOSED_PORT, ...env })
  expect(examined).toMatchObject({ code: 0, output: expect.stringContaining('it is not needed') })
  service = new Service({ env })
  await service.start()
  expect(await service.admin.createInstance('whatsapp')).toMatchObject({ id: expect.any(String) })
})

describe.skipIf(!HAS_PGBOUNCER)('behind the real PgBouncer (skipped where it is not installed)', () => {
  async function pool(mode: 'session' | 'transaction', more = {}): Promise<string> {
    const pooler = await startPgBouncer(await server.createDatabase(), mode, more)
    cleanUps.push(() => pooler.stop())
    return pooler.url
  }

  test('a node works in session mode with the defaults', async () => {
    await expectItWorks(await serviceOn(await pool('session')).start())
  })

  test('transaction mode is refused with an explanation', async () => {
    expect(await startInVain(await pool('transaction'))).toMatch(/pool in session mode/)
  })

  test('a pool that is too small is refused with an explanation', async () => {
    const url = await pool('session', { default_pool_size: 3 })
    expect(await startInVain(url)).toMatch(/its pool has 14 connections for each node/)
  })

  test("a database that the pooler cannot reach is reported in the pooler's words", async () => {
    const url = new URL(await pool('session'))
    url.pathname = '/nowhere'
    expect(await startInVain(url.href)).toMatch(/pooler at .* refuses .*"nowhere"/)
  })
})
