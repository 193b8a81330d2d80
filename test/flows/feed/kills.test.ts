import { expect, inject, test } from 'vitest'
import { createDatabase, STORES } from '../../databases/database.ts'
import { LONG_TEST_WITHIN_MS } from '../../deadlines.ts'
import { newSeed } from '../../rig/random.ts'
import { runFeed } from './kill-run.ts'

/** `npm run test:feed` does the same with 10,000 events. */

test.each(STORES)(
  'on %s each event is seen once, in order, under kills of readers and nodes',
  async store => {
    const database = await createDatabase(store, inject('postgresUrl'))
    const seed = newSeed()
    try {
      const report = await runFeed({ database, events: 240, kills: 2, seed, say: () => undefined })
      expect(report.violations, `seed ${seed}`).toEqual([])
      expect(report.events).toBeGreaterThanOrEqual(240)
      expect(report.disconnects).toBeGreaterThan(0)
    } finally {
      await database.dispose()
    }
  },
  LONG_TEST_WITHIN_MS,
)
