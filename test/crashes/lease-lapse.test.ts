import { expect, inject, test } from 'vitest'
import { createDatabase } from '../database.ts'
import { CONDITION_WITHIN_MS, LONG_TEST_WITHIN_MS, onThisMachine } from '../deadlines.ts'
import { LoadHarness } from '../rig/harness.ts'
import { judge } from '../rig/judge.ts'
import { newSeed } from '../rig/random.ts'

const LEASE_MS = 15_000
/** The least remaining time of the lease at the kill: it is renewed every 5 s. */
const LEAST_LEFT_MS = LEASE_MS - 5_000 - 1_000

test(
  'on PostgreSQL messages to a killed node’s instances are accepted at once, and the instances run again when its lease has lapsed',
  async () => {
    const database = await createDatabase('postgres', inject('postgresUrl'))
    const harness = await LoadHarness.open({ database, instances: 1, seed: newSeed() })
    try {
      harness.startLoad()
      await harness.untilRecovered(CONDITION_WITHIN_MS)
      await harness.service.kill('SIGKILL')
      const killedAt = performance.now()
      await harness.service.start()
      await harness.nextAccepted(onThisMachine(LEAST_LEFT_MS))
      expect(performance.now() - killedAt).toBeLessThan(onThisMachine(LEAST_LEFT_MS))
      await harness.stopLoad()
      const arrivedBefore = harness.recorder.arrivals.length
      await harness.nextArrival(onThisMachine(LEASE_MS + LEAST_LEFT_MS))
      expect(harness.recorder.arrivals.length).toBeGreaterThan(arrivedBefore)
      expect(performance.now() - killedAt).toBeGreaterThan(LEAST_LEFT_MS)
      await harness.untilQuiet()
      expect(judge(await harness.collectFacts())).toMatchObject({ violations: [], lostIncoming: [] })
    } finally {
      await harness.dispose()
      await database.dispose()
    }
  },
  LONG_TEST_WITHIN_MS,
)
