import { expect, inject, test } from 'vitest'
import { createDatabase } from '../databases/database.ts'
import { CONDITION_WITHIN_MS, LONG_TEST_WITHIN_MS } from '../deadlines.ts'
import { LoadHarness } from '../rig/harness.ts'
import { judge } from '../rig/judge.ts'
import { newSeed } from '../rig/random.ts'
import { until } from '../until.ts'

/** Leases that end later than 15 s from now are shortened. */
const IN_14_S = '(extract(epoch from clock_timestamp()) * 1000)::bigint + 14000'

test(
  'on PostgreSQL messages for a killed node’s instances are accepted immediately, and the instances run again when its lease has lapsed',
  async () => {
    const database = await createDatabase('postgres', inject('postgresUrl'))
    const harness = await LoadHarness.open({ database, instances: 1, seed: newSeed() })
    let renewing: NodeJS.Timeout | undefined
    try {
      harness.startLoad()
      await harness.untilRecovered()
      await harness.service.kill('SIGKILL')
      // The lease of the killed node lasts until it is ended below, however slow the machine is. The database's clock counts.
      const { dataDir } = harness.service
      const renew = () => database.run(`update leases set lease_until = ${IN_14_S}`, dataDir)
      await renew()
      renewing = setInterval(() => void renew(), 1_000)
      await harness.service.start()
      const arrivedBefore = harness.recorder.arrivals.length
      await harness.nextAccepted(CONDITION_WITHIN_MS)
      await harness.stopLoad()
      expect(harness.recorder.arrivals).toHaveLength(arrivedBefore)
      clearInterval(renewing)
      await database.run('update leases set lease_until = 0', dataDir)
      await until('an arrival', () => harness.recorder.arrivals.length > arrivedBefore)
      await harness.untilQuiet()
      expect(judge(await harness.collectFacts())).toMatchObject({ violations: [], lostIncoming: [] })
    } finally {
      clearInterval(renewing)
      await harness.dispose()
      await database.dispose()
    }
  },
  LONG_TEST_WITHIN_MS,
)
