import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest'
import { openStore } from '../../../../src/store/open-store.ts'
import { createDatabase, type TestDatabase } from '../../../databases/database.ts'
import { insertEvents } from '../../../databases/insert-events.ts'
import { LONG_TEST_WITHIN_MS } from '../../../deadlines.ts'
import { type Network, startNetwork } from '../../../network.ts'
import { Receiver } from '../../../receiver.ts'
import { Service } from '../../../service.ts'
import { until } from '../../../until.ts'
import { installBrake, killAt, runMove } from './run-move.ts'

const CONTACT = '5511987654321'
const STORED_EVENTS = 30_000
const QUEUED = 12
/** The move is killed while it inserts into a table that has this many rows. The last entry is its last commit. */
const KILLED_AT = [
  ['instances', 0],
  ['credentials', 0],
  ['incoming_messages', 5_000],
  ['incoming_messages', 10_000],
  ['events', 0],
  ['events', 20_000],
  ['meta', 0],
] as const
const CHANGE_A_ROW = `create function change() returns trigger language plpgsql as $$
    begin if new.created_at = 5 then new.type := 'image'; end if; return new; end $$;
  create trigger change before insert on incoming_messages for each row execute function change()`
const UNREACHABLE = 'ws://127.0.0.1:9'

describe('pombal move-to-postgres', () => {
  let source: TestDatabase
  let target: TestDatabase
  let dataDir: string

  beforeEach(async () => {
    source = await createDatabase('sqlite', inject('postgresUrl'))
    target = await createDatabase('postgres', inject('postgresUrl'))
    dataDir = mkdtempSync(join(tmpdir(), 'pombal-move-'))
  })
  afterEach(async () => {
    rmSync(dataDir, { recursive: true, force: true })
    await target.dispose()
  })

  const masterKey = () => readFileSync(join(dataDir, 'master.key'), 'utf8').trim()
  const marker = () => join(dataDir, 'moved-to-postgres.json')
  /** The settings of the move, and of the service afterwards. */
  const moved = () => ({
    ...target.env,
    DATA_DIR: dataDir,
    MASTER_KEY: masterKey(),
    ADMIN_KEY: readFileSync(join(dataDir, 'admin.key'), 'utf8').trim(),
  })
  const open = (databaseUrl?: string) =>
    openStore({ dataDir, databaseUrl, masterKey: Buffer.from(masterKey(), 'base64'), ratePerMinute: 100 })

  /** Uses another data folder, because a start on an empty database is refused beside data in SQLite. */
  async function createTables(): Promise<void> {
    const folder = join(dataDir, 'empty')
    const key = Buffer.from(masterKey(), 'base64')
    const store = await openStore({ dataDir: folder, databaseUrl: target.url!, masterKey: key, ratePerMinute: 100 })
    await store.close()
  }

  function digestOfFiles(): string[] {
    return ['pombal.db', 'pombal.db-wal']
      .map(name => join(dataDir, name))
      .map(file => (existsSync(file) ? createHash('sha256').update(readFileSync(file)).digest('hex') : 'none'))
  }

  /** Accepts messages that cannot be sent yet, and is killed. */
  async function queueMessages(id: string, token: string): Promise<string[]> {
    const service = await new Service({ dataDir, env: { WHATSAPP_URL: UNREACHABLE } }).start()
    const accepted: string[] = []
    for (let index = 0; index < QUEUED; index += 1) {
      accepted.push((await service.instance(id, token).send(CONTACT, `queued ${index}`)).id)
    }
    await service.kill('SIGKILL')
    return accepted
  }

  async function link(network: Network, service: Service) {
    const { id, token } = await service.admin.createInstance('whatsapp')
    await service.admin.connect(id)
    const qr = await until('a QR code', async () => (await service.admin.connection(id)).qr)
    await network.scanQr(qr)
    await service.admin.untilState(id, 'connected')
    return { id, token }
  }

  /** Kills the move at each step. The service starts on neither database meanwhile. */
  async function killRepeatedly(): Promise<void> {
    await createTables()
    await installBrake(target.url!)
    // Before the record of the move, PostgreSQL contains nothing but empty tables.
    await killAt('meta', 0, target.url!, moved())
    await expect(open()).rejects.toThrow('A move of the data to PostgreSQL was begun but has not finished')
    await expect(open(target.url!)).rejects.toThrow('has data that was not moved there')
    for (const [table, rows] of KILLED_AT) {
      await killAt(table, rows, target.url!, moved())
      await expect(open()).rejects.toThrow('A move of the data to PostgreSQL was begun but has not finished')
      await expect(open(target.url!)).rejects.toThrow('The move from SQLite into this database is not finished')
    }
  }

  test(
    'killed repeatedly, it moves everything: the instance connects by itself, and what was queued is sent once',
    async () => {
      const network = await startNetwork(['--claimed-pre-keys', '500'])
      const receiver = await new Receiver().listen()
      const before = await new Service({ dataDir, env: { WHATSAPP_URL: network.url } }).start()
      const { id, token } = await link(network, before)
      const { secret } = await before.instance(id, token).setWebhook(receiver.url)
      const early = await before.instance(id, token).send(CONTACT, 'sent before')
      await until('it to be read', async () => (await before.instance(id, token).message(early.id)).status === 'read')
      await before.kill('SIGTERM')
      const { id: other } = await (async () => {
        const service = await new Service({ dataDir, env: { SANDBOX: 'on', WHATSAPP_URL: UNREACHABLE } }).start()
        const instance = await service.admin.createInstance('sandbox')
        await service.kill('SIGTERM')
        return instance
      })()
      for (const statement of insertEvents('sqlite', other, { count: STORED_EVENTS, length: 200, form: 'new' }))
        await source.run(statement, dataDir)
      const queued = await queueMessages(id, token)
      const files = digestOfFiles()

      await killRepeatedly()
      renameSync(marker(), `${marker()}.away`)
      expect((await runMove(moved())).output).toContain('a part of another move, which was given up')
      renameSync(`${marker()}.away`, marker())
      const last = await runMove(moved())
      expect(last, last.output).toMatchObject({ code: 0 })
      expect(last.output).toContain('Counts and digests match.')
      expect(last.output).not.toContain(masterKey())
      expect(await target.countRowsOf(other, dataDir)).toBe(await source.countRowsOf(other, dataDir))
      expect(digestOfFiles()).toEqual(files)
      // As if it had been killed before its last step.
      writeFileSync(marker(), readFileSync(marker(), 'utf8').replace('"moved"', '"moving"'))
      const second = await createDatabase('postgres', inject('postgresUrl'))
      const elsewhere = await runMove({ ...moved(), DATABASE_URL: second.url! })
      const { host, pathname } = new URL(target.url!)
      expect(elsewhere).toMatchObject({ code: 1, output: expect.stringContaining(`being moved to ${host}${pathname}`) })
      await second.dispose()
      expect((await runMove(moved())).output).toContain('Everything has already been moved.')
      await expect(open()).rejects.toThrow('set DATABASE_URL')

      const after = await new Service({ dataDir, env: { ...moved(), WHATSAPP_URL: network.url } }).start()
      await after.admin.untilState(id, 'connected')
      const instance = after.instance(id, token)
      expect(await instance.setWebhook(receiver.url)).toMatchObject({ secret })
      const late = await instance.send(CONTACT, 'sent after')
      for (const message of [...queued, late.id]) {
        await until('it to be read', async () => (await instance.message(message)).status === 'read')
        const posted = () => receiver.events.filter(({ data }) => data.id === message).map(({ event }) => event)
        await until('its events', () => posted().length >= 3)
        expect(posted()).toEqual(['message.sent', 'message.delivered', 'message.read'])
      }
      const inbox = await network.inbox(CONTACT)
      expect(inbox.map(({ text, copies }) => [text, copies])).toEqual(
        ['sent before', ...queued.map((_, index) => `queued ${index}`), 'sent after'].map(text => [text, 1]),
      )
      await after.dispose()
      await receiver.close()
      await network.close()
    },
    LONG_TEST_WITHIN_MS,
  )

  test('it refuses what it cannot move, and changes nothing', async () => {
    const nothing = await runMove({ ...target.env, DATA_DIR: dataDir })
    expect(nothing).toMatchObject({ code: 1, output: expect.stringContaining('there is nothing to move') })

    const service = await new Service({ dataDir, env: { SANDBOX: 'on' } }).start()
    await service.admin.createConnected()
    expect((await runMove(moved())).output).toContain('Another process uses')
    await service.kill('SIGTERM')
    // `DATABASE_URL` alone does not begin an empty service beside the data.
    await expect(open(target.url!)).rejects.toThrow('run "pombal move-to-postgres"')
    expect((await runMove({ ...moved(), MASTER_KEY: target.env['MASTER_KEY']! })).output).toContain(
      'master key does not match',
    )
    const [{ name: newest } = {}] = await source.read('select max(name) as name from kysely_migration', dataDir)
    await source.run(`update kysely_migration set name = '9999-later' where name = '${newest}'`, dataDir)
    expect((await runMove(moved())).output).toContain('written by a newer version (it has 9999-later)')
    await source.run("delete from kysely_migration where name = '9999-later'", dataDir)
    expect((await runMove(moved())).output).toContain(`used by an older version (it lacks ${newest})`)
    const row = `insert into kysely_migration (name, timestamp) values ('${newest}', '2099-01-01')`
    await source.run(row, dataDir)

    await target.run('create database latin encoding LATIN1 template template0', dataDir)
    const latin = await runMove({ ...moved(), DATABASE_URL: target.url!.replace(/[^/]+$/, 'latin') })
    await target.run('drop database latin', dataDir)
    expect(latin).toMatchObject({ code: 1, output: expect.stringContaining('has the encoding LATIN1') })

    const other = await new Service({ env: { ...target.env, SANDBOX: 'on' } }).start()
    await other.admin.createConnected()
    await other.dispose()
    const full = await runMove(moved())
    expect(full).toMatchObject({ code: 1, output: expect.stringContaining('not empty: it has rows in instances') })
    expect(existsSync(marker())).toBe(false)
    await service.start()
    await service.dispose()
  })

  test('a row that arrives changed is found by its digest, and the service does not start on the result', async () => {
    const service = await new Service({ dataDir, env: { SANDBOX: 'on' } }).start()
    const { id } = await service.admin.createConnected()
    await service.kill('SIGTERM')
    for (const statement of insertEvents('sqlite', id, { count: 10, length: 20, form: 'new' }))
      await source.run(statement, dataDir)
    await createTables()
    await target.run(CHANGE_A_ROW, dataDir)
    const run = await runMove(moved())
    expect(run).toMatchObject({ code: 1, output: expect.stringContaining('incoming_messages differs: 10 rows') })
    await expect(open(target.url!)).rejects.toThrow('The move from SQLite into this database is not finished')
  })
})
