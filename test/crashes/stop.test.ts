import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, inject, test } from 'vitest'
import { createDatabase, STORES } from '../databases/database.ts'
import { LONG_TEST_WITHIN_MS, onThisMachine } from '../deadlines.ts'
import { LoadHarness } from '../rig/harness.ts'
import { judge } from '../rig/judge.ts'
import { newSeed } from '../rig/random.ts'

const STOPS = 3
const STOP_WITHIN_MS = 10_000
/** A stop comes at a random moment of the load. */
const LOAD_MS = [300, 1_500] as const

describe('SIGTERM under load', () => {
  test.each(STORES)(
    'on %s exits with 0 within 10 s, loses nothing and repeats no webhook attempt',
    async store => {
      const seed = Number(process.env['CRASH_SEED'] ?? newSeed())
      console.log(`${store}: CRASH_SEED=${seed}`)
      const database = await createDatabase(store, inject('postgresUrl'))
      const harness = await LoadHarness.open({ database, instances: 2, seed })
      try {
        const random = harness.random
        harness.startLoad()
        for (let n = 0; n < STOPS; n++) {
          await sleep(random.between(...LOAD_MS))
          const askedAt = performance.now()
          expect(await harness.service.kill('SIGTERM')).toEqual({ code: 0, signal: null })
          expect(performance.now() - askedAt).toBeLessThan(onThisMachine(STOP_WITHIN_MS))
          await harness.service.start()
        }
        await harness.stopLoad()
        await harness.untilQuiet()
        const verdict = judge(await harness.collectFacts())
        expect(verdict).toMatchObject({ violations: [], lostIncoming: [], repeatedAttempts: 0 })
        expect([...(await harness.listUndelivered()), ...(await harness.replay())]).toEqual([])
      } finally {
        await harness.dispose()
        await database.dispose()
      }
    },
    LONG_TEST_WITHIN_MS,
  )
})
