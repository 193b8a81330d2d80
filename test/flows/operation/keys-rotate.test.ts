import { execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest'
import { newInstanceId } from '../../../src/domain/ids.ts'
import { openKeys } from '../../../src/keys.ts'
import { KeyRotationUnfinished } from '../../../src/store/errors.ts'
import { openStore } from '../../../src/store/open-store.ts'
import type { Store } from '../../../src/store/store.ts'
import { findSecrets } from '../../contract/fixture.ts'
import { createDatabase, type TestDatabase } from '../../databases/database.ts'
import { ONE_STORE } from '../../databases/one-store.ts'
import { Service } from '../../service.ts'

const PROGRAM = join(import.meta.dirname, '../../../bin/pombal.js')
const DOCUMENT = join(import.meta.dirname, '../../../docs/security.md')
const CREDENTIALS = 5_000
const KILLS = 7

interface Run {
  killed: boolean
  code: number | null
  output: string
}

describe.each(ONE_STORE)('pombal rotate-keys on %s', kind => {
  let database: TestDatabase
  let dataDir: string
  let newKeyFile: string
  let newMasterKey: string
  const instanceId = newInstanceId()
  const webhookSecret = `whsec_${randomBytes(32).toString('base64')}`
  const value = (index: number) => Buffer.from(`credential ${index}`)

  beforeEach(async () => {
    database = await createDatabase(kind, inject('postgresUrl'))
    dataDir = mkdtempSync(join(tmpdir(), 'pombal-rotate-'))
    newKeyFile = join(dataDir, 'new.key')
    createKey()
    newMasterKey = readFileSync(newKeyFile, 'utf8').trim()
    expect(createKey, 'a second time').toThrow('Command failed')
  })
  afterEach(async () => {
    rmSync(dataDir, { recursive: true, force: true })
    await database.dispose()
  })

  /** Runs the command of docs/security.md. */
  function createKey(): void {
    const command = /^\(umask 077; .*?\)/m.exec(readFileSync(DOCUMENT, 'utf8'))?.[0] ?? 'false'
    execFileSync('sh', ['-e', '-c', command], { cwd: dataDir, stdio: 'ignore' })
  }

  /** The key that a start would use. */
  function keyInForce(): Buffer {
    const text = database.env['MASTER_KEY']
    return openKeys({
      dataDir,
      databaseUrl: database.url,
      adminKey: 'unused',
      masterKey: text === undefined ? null : Buffer.from(text, 'base64'),
    }).masterKey
  }

  function open(masterKey: Buffer): Promise<Store> {
    return openStore({ dataDir, databaseUrl: database.url ?? undefined, masterKey, ratePerMinute: 100 })
  }

  async function fill(): Promise<void> {
    const store = await open(keyInForce())
    const tokenDigest = randomBytes(32)
    await store.instances.create(
      { id: instanceId, name: 'x', kind: 'whatsapp', tokenDigest, webhookSecret, goal: 'idle' },
      0,
    )
    const [lease] = await store.leases.acquire('test', 1)
    const changes = Array.from({ length: CREDENTIALS }, (_, index) => ({
      type: 't',
      id: `${index}`,
      value: value(index),
    }))
    await store.credentials.set(lease!, changes)
    await store.leases.release(lease!)
    await store.close()
  }

  /** @param killOn kills the command when its output fulfils the condition, or after this many milliseconds */
  async function rotate(killOn: ((output: string) => boolean) | number | null): Promise<Run> {
    const child = spawn(process.execPath, [PROGRAM, 'rotate-keys'], {
      env: {
        PATH: process.env['PATH'],
        DATA_DIR: dataDir,
        ...database.env,
        NEW_MASTER_KEY_FILE: kind === 'sqlite' ? '' : newKeyFile,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', text => {
        output += text
        if (typeof killOn === 'function' && killOn(output)) child.kill('SIGKILL')
      })
    }
    const closed = new Promise<Run>(resolve => {
      child.once('close', (code, signal) => resolve({ killed: signal === 'SIGKILL', code, output }))
    })
    if (typeof killOn === 'number') await Promise.race([sleep(killOn), closed]).then(() => child.kill('SIGKILL'))
    return closed
  }

  test('killed repeatedly, it ends with everything under the new key and nothing under the old one', async () => {
    await fill()
    const oldKey = keyInForce()
    let refused = 0
    let kills = 0
    for (let round = 0; round < KILLS; round += 1) {
      const afterLines = Math.ceil((round + 1) / 2)
      const run = await rotate(round % 3 === 2 ? 150 + 25 * round : output => output.split('\n').length > afterLines)
      kills += run.killed ? 1 : 0
      const store = await open(keyInForce()).catch(error => error as Error)
      if (store instanceof Error) {
        // The right key is refused for no other reason.
        if (kind === 'sqlite' || !run.output.includes('Start every node'))
          expect(store.name).toBe('KeyRotationUnfinished')
        refused += store instanceof KeyRotationUnfinished ? 1 : 0
      } else await store.close()
    }
    expect(kills).toBeGreaterThan(3)
    expect(refused).toBeGreaterThan(1)
    const last = await rotate(null)
    expect(last.code, last.output).toBe(0)

    if (kind === 'postgres') database.env['MASTER_KEY'] = newMasterKey
    const newKey = keyInForce()
    expect(newKey.equals(oldKey)).toBe(false)
    const store = await open(newKey)
    expect(await findSecrets(store, instanceId, 0)).toEqual({ current: webhookSecret, previous: [] })
    const ids = Array.from({ length: CREDENTIALS }, (_, index) => `${index}`)
    const found = await store.credentials.get(instanceId, 't', ids)
    for (const id of ids) expect(Buffer.from(found.get(id)!).equals(value(Number(id)))).toBe(true)
    await store.close()
    await expect(open(oldKey)).rejects.toThrow('does not match')
    expect(last.output).not.toContain(newKey.toString('base64'))
    expect(last.output).not.toContain(oldKey.toString('base64'))
  })

  test('the service starts on the result, with every secret unchanged', async () => {
    const env: Record<string, string> = { ...database.env, SANDBOX: 'on' }
    const service = await new Service({ dataDir, env }).start()
    const { id, token } = await service.admin.createConnected()
    const { secret } = await service.instance(id, token).setWebhook('https://example.com/hook')
    const busy = await rotate(null)
    expect([busy.code, busy.output]).toEqual([1, expect.stringContaining('The key was not rotated: ')])
    await service.kill('SIGTERM')
    const done = await rotate(null)
    expect(done.code, done.output).toBe(0)
    if (kind === 'sqlite') {
      const files = readdirSync(dataDir).filter(name => name.startsWith('master.key'))
      expect(files.map(name => name.replace(/-.*/, '')).toSorted()).toEqual(['master.key', 'master.key.replaced'])
      for (const name of files) expect(statSync(join(dataDir, name)).mode & 0o777).toBe(0o600)
      const [current, replaced] = files.toSorted().map(name => readFileSync(join(dataDir, name), 'utf8'))
      expect(current).not.toBe(replaced)
    } else env['MASTER_KEY'] = newMasterKey
    await service.start()
    await service.admin.untilState(id, 'connected')
    expect(await service.instance(id, token).setWebhook('https://example.com/hook')).toMatchObject({ secret })
    await service.dispose()
  })

  test('after an update, a rotation waits for the first start; one that was begun before the update is completed', async () => {
    await fill()
    const undoLastStep = () =>
      database.run(
        `alter table accounts drop invited_by; alter table handouts drop created_by;
         delete from kysely_migration where name = '0154-makers-of-links'`,
        dataDir,
      )
    await undoLastStep()
    const refused = await rotate(null)
    expect([refused.code, refused.output]).toEqual([1, expect.stringContaining('Start this version once, stop it')])
    const store = await open(keyInForce())
    await store.close()

    expect((await rotate(output => output.includes('\n'))).killed).toBe(true)
    await expect(open(keyInForce())).rejects.toThrow(KeyRotationUnfinished)
    await undoLastStep()
    const done = await rotate(null)
    expect(done.code, done.output).toBe(0)
    if (kind === 'postgres') database.env['MASTER_KEY'] = newMasterKey
    const rotated = await open(keyInForce())
    expect(await findSecrets(rotated, instanceId, 0)).toEqual({ current: webhookSecret, previous: [] })
    await rotated.close()
  })
})
