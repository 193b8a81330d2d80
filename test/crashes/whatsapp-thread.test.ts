import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, inject, test } from 'vitest'
import { createDatabase, STORES } from '../databases/database.ts'
import { LONG_TEST_WITHIN_MS } from '../deadlines.ts'
import { LoadHarness } from '../rig/harness.ts'
import type { Pace } from '../rig/load.ts'
import { newSeed, Random } from '../rig/random.ts'
import { Service } from '../service.ts'
import { until } from '../until.ts'
import { endLoad } from './end-load.ts'

const PACE: Pace = { senders: 3, sendEveryMs: [0, 200], writeEveryMs: [100, 400], maxPendingEvents: 30 }
const LATER_MS = 2_000
/** Enough for a thread's code, and little enough to exhaust soon. */
const HEAP = '--max-old-space-size=160'
const PRELOAD = `--import=${join(import.meta.dirname, 'thread-fault.ts')}`
const POISON = `--import=${join(import.meta.dirname, 'poison-instance.ts')}`
/** Two in the shared thread, three in a thread of its own, and one before the instance was known to be alone there. */
const MOST_DEATHS = 6

/** After the second death, each instance gets a thread of its own. */
const FAULTS = ['error', 'memory', 'loop', 'error']

test.each(STORES)(
  'on %s, the death of a WhatsApp thread loses nothing and shows nothing twice',
  async store => {
    const seed = Number(process.env['CRASH_SEED'] ?? newSeed())
    console.log(`deaths of a WhatsApp thread, on ${store}: CRASH_SEED=${seed}`)
    const random = new Random(seed)
    const folder = mkdtempSync(join(tmpdir(), 'pombal-fault-'))
    const database = await createDatabase(store, inject('postgresUrl'))
    const nodes = [
      { env: { THREAD_FAULT: join(folder, 'fault'), WHATSAPP_THREADS: '1' }, nodeOptions: [PRELOAD, HEAP] },
    ]
    const harness = await LoadHarness.open({ database, instances: 2, seed, load: { pace: PACE }, nodes })
    const deaths = () => harness.service.wholeLog.split('"msg":"whatsapp.thread_died"').length - 1
    try {
      harness.startLoad()
      for (const [index, fault] of FAULTS.entries()) {
        await sleep(random.between(0, LATER_MS))
        writeFileSync(join(folder, 'next'), fault)
        renameSync(join(folder, 'next'), join(folder, 'fault'))
        await until(`death ${index + 1}, by ${fault}`, () => deaths() > index)
        await harness.untilConnected()
      }
      const facts = await endLoad(harness)
      expect(facts.accepted.length).toBeGreaterThan(FAULTS.length)
      expect(deaths()).toBe(FAULTS.length)
      expect(await harness.service.kill('SIGTERM')).toEqual({ code: 0, signal: null })
    } finally {
      await harness.dispose()
      await database.dispose()
      rmSync(folder, { recursive: true })
    }
  },
  LONG_TEST_WITHIN_MS,
)

test(
  'an instance that kills each of its threads is stopped until somebody connects it, and the others stay connected',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'pombal-poison-'))
    const file = join(folder, 'poison')
    const service = new Service({
      env: { POISON: file, WHATSAPP_THREADS: '1' },
      nodeOptions: [POISON],
    })
    try {
      await service.start()
      const { admin } = service
      const poison = await admin.createConnected('poison')
      const other = await admin.createConnected('other')
      const instance = service.instance(other.id, other.token)
      writeFileSync(file, poison.id)
      // Starts the connection again, in the thread of both.
      await service.kill('SIGTERM')
      await service.start()
      const stopped = await admin.untilState(poison.id, 'stopped')
      expect(stopped.cause).toBe('thread_crashed')
      await admin.untilState(other.id, 'connected')
      const { id } = await instance.send('5511987654321', 'while another one was stopped')
      await until('the text to be read', async () => (await instance.message(id)).status === 'read')
      const deaths = service.logLines.filter(({ msg }) => msg === 'whatsapp.thread_died').length
      expect(deaths).toBeLessThanOrEqual(MOST_DEATHS)

      rmSync(file)
      await service.kill('SIGTERM')
      await service.start()
      await admin.untilState(other.id, 'connected')
      const next = await instance.send('5511987654321', 'after a restart')
      await until('the text to be read', async () => (await instance.message(next.id)).status === 'read')
      expect(await admin.connection(poison.id)).toMatchObject({ state: 'stopped', cause: 'thread_crashed' })
      await admin.connect(poison.id)
      await admin.untilState(poison.id, 'connected')
    } finally {
      await service.dispose()
      rmSync(folder, { recursive: true })
    }
  },
  LONG_TEST_WITHIN_MS,
)
