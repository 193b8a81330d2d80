import { expect, inject, test } from 'vitest'
import { createDatabase } from '../database.ts'
import { CONDITION_WITHIN_MS, LONG_TEST_WITHIN_MS, onThisMachine } from '../deadlines.ts'
import { judge } from '../rig/judge.ts'
import { newSeed } from '../rig/random.ts'
import { Stage } from '../rig/stage.ts'

const LEASE_MS = 15_000
/** Of the lease, what may be left of it when the node is killed: it is renewed every 5 s. */
const LEAST_LEFT_MS = LEASE_MS - 5_000 - 1_000

test(
  'on PostgreSQL a killed node’s instances are accepted for at once, and run again when its lease has lapsed',
  async () => {
    const database = await createDatabase('postgres', inject('postgresUrl'))
    const stage = await Stage.open({ database, instances: 1, seed: newSeed() })
    try {
      stage.startLoad()
      await stage.untilRecovered(CONDITION_WITHIN_MS)
      await stage.service.kill('SIGKILL')
      const killedAt = performance.now()
      await stage.service.start()
      await stage.nextAccepted(onThisMachine(LEAST_LEFT_MS))
      expect(performance.now() - killedAt).toBeLessThan(onThisMachine(LEAST_LEFT_MS))
      await stage.stopLoad()
      const arrivedBefore = stage.recorder.arrivals.length
      await stage.nextArrival(onThisMachine(LEASE_MS + LEAST_LEFT_MS))
      expect(stage.recorder.arrivals.length).toBeGreaterThan(arrivedBefore)
      expect(performance.now() - killedAt).toBeGreaterThan(LEAST_LEFT_MS)
      await stage.untilQuiet()
      expect(judge(await stage.collectFacts())).toMatchObject({ violations: [], lostIncoming: [] })
    } finally {
      await stage.dispose()
      await database.dispose()
    }
  },
  LONG_TEST_WITHIN_MS,
)
