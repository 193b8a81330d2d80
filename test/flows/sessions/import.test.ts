import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, utimesSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Curve } from 'baileys'
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest'
import { openKeys } from '../../../src/keys.ts'
import { openStore } from '../../../src/store/open-store.ts'
import type { Store } from '../../../src/store/store.ts'
import { readSession } from '../../../src/whatsapp/baileys/transfer/session.ts'
import { createDatabase, type TestDatabase } from '../../databases/database.ts'
import { ONE_STORE } from '../../databases/one-store.ts'
import { linkedSession, sessionFiles, withNumberLists, writeFiles } from '../../sessions/linked-session.ts'
import { type CommandRun, runCommand } from '../../sessions/run-command.ts'

const PHONE = '5511987654321'
/** Enough keys that an import can be killed in the middle. */
const MANY_KEYS = 400
const SESSIONS = 4
const AN_HOUR_AGO = Date.now() / 1_000 - 3_600

describe.each(ONE_STORE)('on %s', kind => {
  let database: TestDatabase
  let dataDir: string
  let sessions: string

  beforeEach(async () => {
    database = await createDatabase(kind, inject('postgresUrl'))
    dataDir = mkdtempSync(join(tmpdir(), 'pombal-import-'))
    sessions = mkdtempSync(join(tmpdir(), 'pombal-sessions-'))
  })
  afterEach(async () => {
    for (const folder of [dataDir, sessions]) rmSync(folder, { recursive: true, force: true })
    await database.dispose()
  })

  function run(args: readonly string[], killWhen?: (output: string) => boolean): Promise<CommandRun> {
    return runCommand(args, { DATA_DIR: dataDir, ...database.env }, killWhen)
  }

  async function withStore<T>(use: (store: Store) => Promise<T>): Promise<T> {
    const key = database.env['MASTER_KEY']
    const masterKey = key === undefined ? null : Buffer.from(key, 'base64')
    const keys = openKeys({ dataDir, databaseUrl: database.url, adminKey: 'unused', masterKey })
    const store = await openStore({
      dataDir,
      databaseUrl: database.url ?? undefined,
      masterKey: keys.masterKey,
      ratePerMinute: 100,
    })
    try {
      return await use(store)
    } finally {
      await store.close()
    }
  }

  function instances() {
    return withStore(async store => (await store.instances.list({ limit: 100 })).data)
  }

  /** A session that was last written an hour ago. */
  function write(name: string, phone = PHONE, keys = 0): string {
    const session = linkedSession(phone)
    // One pair under many numbers, because making pairs takes long.
    const pair = Curve.generateKeyPair()
    for (let id = 3; id < keys; id += 1) session.keys['pre-key']![id] = pair
    if (keys > 0) session.creds.nextPreKeyId = keys
    const folder = join(sessions, name)
    writeFiles(folder, sessionFiles(session))
    for (const file of readdirSync(folder)) utimesSync(join(folder, file), AN_HOUR_AGO, AN_HOUR_AGO)
    return folder
  }

  function tokens(): { instanceId: string; phone: string; token: string }[] {
    const lines = readFileSync(join(dataDir, 'imported-tokens.jsonl'), 'utf8').trim().split('\n')
    return lines.map(line => JSON.parse(line))
  }

  test('an imported number is stopped, has its token in a private file, and is imported once', async () => {
    write('shop')
    const first = await run(['import-sessions', sessions])
    expect(first).toMatchObject({ code: 0, output: expect.stringMatching(/shop +5511987654321 +13 +0 +1 h ago/) })
    const [instance] = await instances()
    expect(instance).toMatchObject({ name: 'shop', kind: 'whatsapp', state: 'stopped', phone: PHONE })
    const [line] = tokens()
    expect(line).toMatchObject({ instanceId: instance!.id, phone: PHONE })
    expect(first.output).not.toContain(line!.token)
    expect(statSync(join(dataDir, 'imported-tokens.jsonl')).mode & 0o777).toBe(0o600)
    await withStore(async store => {
      expect(await store.connections.find(instance!.id)).toMatchObject({ cause: 'imported', goal: 'idle' })
      const { data } = await store.audit.list({ limit: 5 }, {})
      expect(data).toMatchObject([{ actor: 'command_line', action: 'importSession', instanceId: instance!.id }])
      expect((await store.audit.verify()).brokenAt).toBeNull()
    })
    const again = await run(['import-sessions', join(sessions, 'shop')])
    expect(again).toMatchObject({
      code: 0,
      output: expect.stringContaining(`was imported already, as shop (${instance!.id}), and is skipped`),
    })
    const elsewhere = ['--tokens', join(sessions, 'tokens.jsonl')]
    const tokenless = await run(['import-sessions', join(sessions, 'shop'), ...elsewhere])
    expect(tokenless).toMatchObject({ code: 1, output: expect.stringContaining('create a new token in the panel') })
    const connected = `update connections set cause = null where instance_id = '${instance!.id}'`
    await database.run(connected, dataDir)
    const unknown = await run(['import-sessions', join(sessions, 'shop'), ...elsewhere])
    expect(unknown).toMatchObject({ code: 1, output: expect.stringContaining('linked already, as shop') })
    expect((await run(['import-sessions', join(sessions, 'shop')])).code).toBe(0)
    expect(await instances()).toHaveLength(1)
    expect(tokens()).toHaveLength(1)
  })

  test.runIf(kind === 'postgres')('an import that fails in the middle says what it has imported', async () => {
    const shops = ['one', 'two', 'three'].map((name, n) => write(name, `551190000000${n}`))
    expect((await run(['import-sessions', shops[0]!])).code).toBe(0)
    await database.run(
      `create function refuse() returns trigger language plpgsql as $$ begin
         if (select count(*) from instances) > 1 then raise exception 'full' using errcode = '53100'; end if;
         return new;
       end $$;
       create trigger refuse before insert on instances for each row execute function refuse()`,
      dataDir,
    )
    const failed = await run(['import-sessions', ...shops])
    expect(failed.code).toBe(1)
    expect(failed.output).toContain('Only the numbers above were imported (1)')
    expect(failed.output).not.toContain('Nothing was imported')
    await database.run('drop trigger refuse on instances', dataDir)
    expect((await run(['import-sessions', ...shops])).code).toBe(0)
    expect(await instances()).toHaveLength(3)
  })

  test('a torn, foreign, missing or running session is refused and changes nothing; the others are imported', async () => {
    const torn = write('torn')
    writeFiles(torn, new Map([['creds.json', '{"noiseKey":{"priv']]))
    const foreign = join(sessions, 'foreign')
    mkdirSync(foreign)
    writeFiles(write('running', '5511911111111'), new Map([['session-1.0.json', '{"_sessions":{}}']]))
    const absent = join(sessions, 'absent')
    for (const [folder, sentence] of [
      [torn, 'cut off'],
      [foreign, 'not a Baileys session'],
      [absent, 'no such folder'],
      [join(sessions, 'running'), 'stop the other program'],
    ]) {
      const refused = await run(['import-sessions', folder!])
      expect(refused).toMatchObject({ code: 1, output: expect.stringContaining(sentence!) })
    }
    expect(readdirSync(dataDir)).toEqual([])
    write('good')
    const mixed = await run(['import-sessions', torn, join(sessions, 'good'), foreign])
    expect(mixed.code).toBe(1)
    expect(await instances()).toMatchObject([{ name: 'good' }])
    expect(await run(['import-sessions', '--stopped', join(sessions, 'running')])).toMatchObject({ code: 0 })
    expect(await instances()).toHaveLength(2)
  })

  test('rows of other gateways are imported: of Evolution, with its keys in files or in Redis, and of WAHA', async () => {
    const ids = ['a1b2', 'c3d4', 'e5f6']
    const files = ids.map((_, n) => sessionFiles(linkedSession(`551190000000${n}`)))
    const nameOf = (file: string) => file.slice(0, -'.json'.length)
    // Evolution's column contains a JSON string of JSON. Its keys are files.
    const [ofEvolution, ofRedis, ofWaha] = files as [Map<string, string>, Map<string, string>, Map<string, string>]
    const creds = JSON.stringify(ofEvolution.get('creds.json')!)
    const row = { session: ids[0], key: 'creds', value: creds, name: 'Shop', webhook: 'https://shop.example/hook' }
    writeFiles(join(sessions, 'instances', ids[0]!), ofEvolution)
    rmSync(join(sessions, 'instances', ids[0]!, 'creds.json'))
    for (const file of readdirSync(join(sessions, 'instances', ids[0]!)))
      utimesSync(join(sessions, 'instances', ids[0]!, file), AN_HOUR_AGO, AN_HOUR_AGO)
    const hash = Object.fromEntries(Array.from(ofRedis, ([file, json]) => [nameOf(file), JSON.stringify(json)]))
    const waha = Array.from(ofWaha, ([file, json]) =>
      JSON.stringify({ session: ids[2], key: nameOf(file), value: JSON.parse(withNumberLists(json)) }),
    )
    writeFiles(
      sessions,
      new Map([
        ['evolution.jsonl', `${JSON.stringify(row)}\n`],
        ['cafe.json', JSON.stringify(hash)],
        ['waha.jsonl', `${waha.join('\n')}\n`],
        ['notes.txt', 'not rows'],
      ]),
    )
    const paths = ['evolution.jsonl', 'cafe.json', 'waha.jsonl'].map(name => join(sessions, name))
    const done = await run(['import-sessions', '--keys', join(sessions, 'instances'), ...paths])
    expect(done).toMatchObject({ code: 0, output: expect.stringMatching(/Shop +5511900000000 +13 +0 +1 h ago/) })
    const all = await instances()
    expect(all.map(({ name }) => name).sort()).toEqual(['Shop', 'cafe', 'e5f6'])
    await withStore(async store => {
      const shop = all.find(({ name }) => name === 'Shop')!
      expect((await store.instances.findWebhook(shop.id))?.url).toBe('https://shop.example/hook')
      for (const { id } of all) {
        const exported = await store.transfers.export(id, Date.now())
        expect(exported.kind === 'exported' && exported.rows.length).toBe(files[0]!.size)
      }
    })
    const foreign = await run(['import-sessions', join(sessions, 'notes.txt')])
    expect(foreign).toMatchObject({ code: 1, output: expect.stringContaining('neither a folder nor a file with rows') })
  })

  test('hostile rows lead to no other folder, and write no control characters to the terminal', async () => {
    const files = sessionFiles(linkedSession())
    writeFiles(join(sessions, 'other'), files)
    const creds = files.get('creds.json')!
    const row = { session: '../other', key: 'creds', value: creds, name: 'a\u001B[2J\u0007b', webhook: 'javascript:1' }
    writeFiles(sessions, new Map([['rows.jsonl', JSON.stringify(row)]]))
    mkdirSync(join(sessions, 'keys'))
    const { code, output } = await run([
      'import-sessions',
      '--keys',
      join(sessions, 'keys'),
      join(sessions, 'rows.jsonl'),
    ])
    expect(code).toBe(0)
    expect(output).not.toMatch(/[^\P{Cc}\n]/u)
    expect(await instances()).toMatchObject([{ name: 'a[2Jb' }])
    await withStore(async store => {
      const [{ id }] = (await store.instances.list({ limit: 1 })).data as unknown as [{ id: string }]
      expect((await store.instances.findWebhook(id))?.url).toBeNull()
      const exported = await store.transfers.export(id, Date.now())
      expect(exported.kind === 'exported' && exported.rows.map(({ type }) => type)).toEqual(['creds'])
    })
  })

  test('a dry run shows what would be imported, and touches neither data nor folder', async () => {
    const folder = write('shop')
    const before = readdirSync(folder).map(file => statSync(join(folder, file)).mtimeMs)
    const { code, output } = await run(['import-sessions', '--dry-run', sessions])
    expect(code).toBe(0)
    expect(output).toContain(PHONE)
    expect(readdirSync(dataDir)).toEqual([])
    expect(readdirSync(folder).map(file => statSync(join(folder, file)).mtimeMs)).toEqual(before)
  })

  test('an existing file of tokens that others can read is refused before anything is imported', async () => {
    write('shop')
    const file = join(sessions, 'tokens')
    writeFiles(sessions, new Map([['tokens', '']]))
    chmodSync(file, 0o644)
    const { code, output } = await run(['import-sessions', join(sessions, 'shop'), '--tokens', file])
    expect({ code, output }).toMatchObject({ code: 1, output: expect.stringContaining('chmod 600') })
    expect(await instances()).toEqual([])
  })

  test('after kills in the middle, every number is there once, complete and with its token', async () => {
    for (let n = 0; n < SESSIONS; n += 1) write(`shop ${n}`, `551190000000${n}`, MANY_KEYS)
    // Each run imports at least one number.
    for (let n = 1; n < SESSIONS; n += 1)
      await run(['import-sessions', sessions], output => output.includes('Imported'))
    const some = await instances()
    expect(some.length).toBeGreaterThanOrEqual(SESSIONS - 1)
    await run(['import-sessions', sessions])
    const all = await instances()
    expect(all.map(({ phone }) => phone).sort()).toEqual(Array.from({ length: SESSIONS }, (_, n) => `551190000000${n}`))
    expect(all.map(({ id }) => id)).toEqual(expect.arrayContaining(some.map(({ id }) => id)))
    expect(tokens().map(({ instanceId }) => instanceId)).toEqual(expect.arrayContaining(all.map(({ id }) => id)))
    await withStore(async store => {
      for (const { id, name } of all) {
        const exported = await store.transfers.export(id, Date.now())
        const rows = exported.kind === 'exported' ? exported.rows : []
        expect(rows.length, name).toBe(readdirSync(join(sessions, name)).length)
      }
    })
  })

  test('an exported number is stopped and needs a confirmation; the folder equals the imported one', async () => {
    const folder = write('shop')
    await run(['import-sessions', folder])
    const [instance] = await instances()
    const target = join(sessions, 'new', 'shop')
    // The folder left by a killed export.
    mkdirSync(join(sessions, 'new', `.pombal-export-${instance!.id}-abcdef`), { recursive: true })
    const exported = await run(['export-session', instance!.id, target])
    expect(exported).toMatchObject({ code: 0, output: expect.stringContaining(PHONE) })
    expect(readdirSync(join(sessions, 'new'))).toEqual(['shop'])
    expect(readdirSync(target).sort()).toEqual(readdirSync(folder).sort())
    for (const file of readdirSync(folder))
      expect(readFileSync(join(target, file), 'utf8'), file).toBe(readFileSync(join(folder, file), 'utf8'))
    expect(statSync(target).mode & 0o777).toBe(0o700)
    expect(statSync(join(target, 'creds.json')).mode & 0o777).toBe(0o600)
    await withStore(async store => {
      expect(await store.connections.find(instance!.id)).toMatchObject({ state: 'stopped', cause: 'exported' })
      expect(await store.connections.requestConnect(instance!.id, null)).toBe(false)
      expect(await store.connections.requestConnect(instance!.id, null, true)).toBe(true)
    })
    const refused = await run(['import-sessions', '--stopped', target])
    expect(refused).toMatchObject({ code: 1, output: expect.stringContaining('Delete that instance first') })
    await withStore(store => store.instances.delete(instance!.id, Date.now()))
    expect(await run(['import-sessions', '--stopped', target])).toMatchObject({ code: 0 })
    const [again] = await instances()
    await withStore(async store => {
      const { rows } = (await store.transfers.export(again!.id, Date.now())) as { rows: unknown[] }
      const files = readdirSync(folder).map(file => ({
        name: file.slice(0, -'.json'.length),
        json: readFileSync(join(folder, file), 'utf8'),
      }))
      const given = readSession(files).rows
      const inOrder = (some: readonly unknown[]) => some.map(row => JSON.stringify(row)).sort()
      expect(inOrder(rows)).toEqual(inOrder(given))
    })
  })

  test('a number is not exported while a node runs it, or into a folder that is not empty', async () => {
    await run(['import-sessions', write('shop')])
    const [instance] = await instances()
    const used = await run(['export-session', instance!.id, join(sessions, 'shop')])
    expect(used).toMatchObject({ code: 1, output: expect.stringContaining('not empty') })
    const under = await run(['export-session', instance!.id, join(sessions, 'shop', 'creds.json', 'below')])
    expect(under).toMatchObject({ code: 1, output: expect.stringContaining('No folder was written: EEXIST') })
    const unknown = await run(['export-session', 'inst_000000000000', join(sessions, 'x')])
    expect(unknown).toMatchObject({ code: 1, output: expect.stringContaining('No WhatsApp number') })
    // Nothing has stopped it, and nothing is left beside the folders.
    expect(readdirSync(sessions)).toEqual(['shop'])
    await withStore(async store => {
      await store.leases.attend('node')
      await store.leases.acquire('node', 10)
      expect(await store.transfers.export(instance!.id, Date.now())).toEqual({ kind: 'running' })
      expect(await store.connections.find(instance!.id)).toMatchObject({ cause: 'imported' })
    })
  })
})
