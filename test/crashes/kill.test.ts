import { describe, expect, inject, test } from 'vitest'
import { createDatabase, STORES } from '../database.ts'
import { runKills } from './kill-run.ts'
import { newSeed } from './random.ts'

/** Of each store: 50 in all. `npm run test:crash` does more. */
const KILLS = 25
const INSTANCES = 2
const WITHIN_MS = 300_000

describe('kill -9 at random points under load', () => {
  test.each(STORES)(
    'on %s loses nothing, shows nothing twice, and tells every change in order',
    async store => {
      const seed = Number(process.env['CRASH_SEED'] ?? newSeed())
      console.log(`${store}: CRASH_SEED=${seed}`)
      const database = await createDatabase(store, inject('postgresUrl'))
      try {
        const said: string[] = []
        const report = await runKills({
          database,
          kills: KILLS,
          instances: INSTANCES,
          seed,
          say: line => said.push(line),
        })
        const { violations, lostIncoming, ...counts } = report
        console.log(`${store}: ${JSON.stringify(counts)}`)
        expect(violations, said.join('\n')).toEqual([])
        expect(lostIncoming).toEqual([])
        expect(report.accepted).toBeGreaterThan(KILLS)
      } finally {
        await database.dispose()
      }
    },
    WITHIN_MS,
  )
})
