import { describe, expect, inject, test } from 'vitest'
import { LONG_TEST_WITHIN_MS } from '../deadlines.ts'
import { newSeed } from '../rig/random.ts'
import type { FaultContext } from './fault.ts'
import { FAULTS } from './faults.ts'

/** The short form. `npm run test:faults` runs all faults. */
const SHORT: readonly (readonly [name: string, store: string])[] = [
  ['kill -9', 'postgres'],
  ['SIGTERM', 'postgres'],
  ['disk full', 'sqlite'],
  ['a corrupt or foreign database file', 'sqlite'],
]
/** The duration of the recovery is judged by the long form only, because other tests run on this machine too. */
const SLOW = /^It took \d+ ms to recover\.$/

describe.concurrent('real faults', () => {
  const shared = () => Promise.reject(new Error('Other tests use this PostgreSQL too.'))

  test.each(SHORT)(
    '%s on %s: nothing is lost, duplicated or out of order, and the service recovers',
    async (name, store) => {
      const fault = FAULTS.find(one => one.name === name && one.store === store)
      if (fault === undefined) throw new Error(`There is no fault "${name}" on ${store}.`)
      const seed = Number(process.env['FAULT_SEED'] ?? newSeed())
      const said = [`${name} on ${store}: FAULT_SEED=${seed}`]
      const postgres = { url: inject('postgresUrl'), crash: shared, restart: shared }
      const context: FaultContext = { seed, postgres, logs: null, say: line => said.push(line) }
      const { violations, ...counts } = await fault.run(context)
      console.log(`${said.join('; ')}: ${JSON.stringify(counts)}`)
      expect(violations.filter(violation => !SLOW.test(violation))).toEqual([])
    },
    LONG_TEST_WITHIN_MS,
  )
})
