import { describe, expect, inject, test } from 'vitest'
import { LONG_TEST_WITHIN_MS } from '../deadlines.ts'
import { newSeed } from '../rig/random.ts'
import type { FaultContext } from './fault.ts'
import { FAULTS } from './faults.ts'

/** The short form: `npm run test:faults` has them all, as often as one likes. */
const SHORT: readonly (readonly [name: string, store: string])[] = [
  ['kill -9', 'postgres'],
  ['SIGTERM', 'postgres'],
  ['disk full', 'sqlite'],
  ['a corrupt or foreign database file', 'sqlite'],
]
/** Of recovering, on a machine that runs other tests too: how long it takes is measured by the long form. */
const SLOW = /^It took \d+ ms to recover\.$/

describe.concurrent('what really happens to services', () => {
  const shared = () => Promise.reject(new Error('Other tests use this PostgreSQL too.'))

  test.each(SHORT)(
    '%s on %s: nothing is lost, doubled or out of order, and it works again',
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
