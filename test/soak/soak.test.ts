import { expect, inject, test } from 'vitest'
import { createDatabase } from '../databases/database.ts'
import { newSeed } from '../rig/random.ts'
import { listViolations, runSoak } from './soak-run.ts'

/** `npm run test:soak` takes 5 minutes, on both databases. */
const DURATION_MS = 30_000
const INSTANCES = 50
const WITHIN_MS = 480_000

test(
  '50 instances over a WhatsApp that misbehaves at random: nothing is lost or duplicated, and all are connected in the end',
  async () => {
    const seed = Number(process.env['SOAK_SEED'] ?? newSeed())
    console.log(`SOAK_SEED=${seed}`)
    const database = await createDatabase('sqlite', inject('postgresUrl'))
    const said: string[] = []
    try {
      const report = await runSoak({
        database,
        instances: INSTANCES,
        durationMs: DURATION_MS,
        seed,
        say: line => said.push(line),
      })
      const { violations, lostIncoming, faults, ...counts } = report
      console.log(JSON.stringify({ ...counts, faults: Object.fromEntries(faults) }))
      expect(listViolations(report), said.join('\n')).toEqual([])
      expect(report.accepted).toBeGreaterThan(INSTANCES)
      expect(report.incoming).toBeGreaterThan(INSTANCES)
    } finally {
      await database.dispose()
    }
  },
  WITHIN_MS,
)
