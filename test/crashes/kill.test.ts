import { describe, expect, inject, test } from 'vitest'
import { createDatabase, STORES, type StoreKind } from '../databases/database.ts'
import { LONG_TEST_WITHIN_MS } from '../deadlines.ts'
import { newSeed } from '../rig/random.ts'
import { type KillRunOptions, runKills } from './kill-run.ts'

/** The kills on each store. `npm run test:crash` does more. */
const KILLS = 12
const SANDBOX_KILLS = 5

async function expectAllHeld(store: StoreKind, options: Pick<KillRunOptions, 'kills' | 'instances' | 'sandbox'>) {
  const seed = Number(process.env['CRASH_SEED'] ?? newSeed())
  const what = `${options.sandbox ? 'a sandbox' : 'linked numbers'} on ${store}`
  console.log(`${what}: CRASH_SEED=${seed}`)
  const database = await createDatabase(store, inject('postgresUrl'))
  try {
    const said: string[] = []
    const report = await runKills({ ...options, database, seed, say: line => said.push(line) })
    const { violations, lostIncoming, ...counts } = report
    console.log(`${what}: ${JSON.stringify(counts)}`)
    expect(violations, said.join('\n')).toEqual([])
    expect(lostIncoming).toEqual([])
    expect(report.accepted).toBeGreaterThan(options.kills)
  } finally {
    await database.dispose()
  }
}

// Concurrently, because a run on PostgreSQL mostly waits for leases to lapse.
describe('kill -9 at random points under load', { concurrent: true }, () => {
  test.each(STORES)(
    'on %s loses nothing, shows nothing twice, and reports every change in order',
    store => expectAllHeld(store, { kills: KILLS, instances: 2 }),
    LONG_TEST_WITHIN_MS,
  )

  test(
    'of a sandbox, whose network dies with the service, loses nothing and reports every change in order',
    () => expectAllHeld('sqlite', { kills: SANDBOX_KILLS, instances: 1, sandbox: true }),
    LONG_TEST_WITHIN_MS,
  )
})
