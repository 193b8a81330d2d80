import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import Sqlite from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { DataDirInUse } from '../../src/store/errors.ts'
import { createConnected } from './fixture.ts'
import { createSqliteHarness, type StoreHarness } from './harness.ts'

const WRITER = fileURLToPath(new URL('./promises/sqlite-writer.ts', import.meta.url))
const KILLS = 5
const ROOT = join(import.meta.dirname, '../..')

/** Behaviour with several processes and crashes. */
describe('processes on one SQLite folder', () => {
  let harness: StoreHarness
  const children: ChildProcess[] = []

  beforeEach(async () => {
    harness = await createSqliteHarness()
  })
  afterEach(async () => {
    for (const child of children.splice(0)) {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill('SIGKILL')
        await once(child, 'exit')
      }
    }
    await harness.dispose()
  })

  /** A process that accepts messages as fast as it can and prints the ID of each accepted message. */
  function startWriter(instanceId: string): { child: ChildProcess; lines: string[]; ready: Promise<void> } {
    const child = spawn(process.execPath, [WRITER, harness.options.dataDir, instanceId], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    children.push(child)
    const lines: string[] = []
    const ready = new Promise<void>((resolve, reject) => {
      createInterface({ input: child.stdout! }).on('line', line => {
        lines.push(line)
        if (lines.length === 50) resolve()
      })
      child.once('exit', code => reject(new Error(`The writer ended with ${code}.`)))
    })
    return { child, lines, ready }
  }

  test('a start undoes the writes of a process that was killed before it enabled the write-ahead log', async () => {
    const store = await harness.open()
    const { instanceId } = await createConnected(store)
    await store.close()
    const path = join(harness.options.dataDir, 'pombal.db')
    const writer = `
      const db = new (require('better-sqlite3'))(process.argv[1])
      db.pragma('journal_mode = DELETE')
      db.pragma('cache_size = 1')
      db.exec('begin; create table unfinished (filler blob); delete from instances')
      for (let n = 0; n < 100; n++) db.exec('insert into unfinished values (randomblob(10000))')
      process.kill(process.pid, 'SIGKILL')`
    spawnSync(process.execPath, ['-e', writer, path], { cwd: ROOT, stdio: 'inherit' })
    expect(existsSync(`${path}-journal`)).toBe(true)

    const opened = await harness.open()
    expect(await opened.instances.find(instanceId)).not.toBeNull()
  })

  test('a second one is refused with a remedy while the first one runs, and works once that is killed', async () => {
    const store = await harness.open()
    const { instanceId } = await createConnected(store)
    await store.close()
    const { child, ready } = startWriter(instanceId)
    await ready
    const refusal = await harness.open().catch(error => error)
    expect(refusal).toBeInstanceOf(DataDirInUse)
    expect(refusal.message).toContain('DATA_DIR')
    child.kill('SIGKILL')
    await once(child, 'exit')
    await (await harness.open()).close()
  })

  test('a second store in the same process is refused', async () => {
    const store = await harness.open()
    await expect(harness.open()).rejects.toThrow(DataDirInUse)
    await store.close()
    await (await harness.open()).close()
  })

  test('the database stays accessible to readers and backups while the service runs', async () => {
    const store = await harness.open()
    await createConnected(store)
    const reader = new Sqlite(join(harness.options.dataDir, 'pombal.db'), { readonly: true })
    expect(reader.prepare('select count(*) from instances').pluck().get()).toBe(1)
    await reader.backup(join(harness.options.dataDir, 'copy.db'))
    reader.close()
  })

  test('acknowledged messages are there after kill -9, in their order', async () => {
    const store = await harness.open()
    const { instanceId } = await createConnected(store)
    await store.close()
    const accepted: string[] = []
    for (let kill = 0; kill < KILLS; kill += 1) {
      const { child, lines, ready } = startWriter(instanceId)
      await ready
      child.kill('SIGKILL')
      await once(child, 'close')
      accepted.push(...lines)
    }
    const again = await harness.open()
    const queued = (await again.messages.listQueued(instanceId, 1_000_000)).map(({ id }) => id)
    const present = new Set(queued)
    expect(accepted.filter(id => !present.has(id))).toEqual([])
    expect(accepted.length).toBeGreaterThanOrEqual(KILLS * 50)
    const acknowledged = new Set(accepted)
    expect(queued.filter(id => acknowledged.has(id))).toEqual(accepted)
  })
})
