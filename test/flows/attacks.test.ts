import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { ATTACKS, type AttackName } from '../attacks/attacks.ts'
import { AttackHarness } from '../attacks/harness.ts'
import { createDatabase, type StoreKind, type TestDatabase } from '../databases/database.ts'
import { CONDITION_WITHIN_MS, TEST_WITHIN_MS } from '../deadlines.ts'

/**
 * Attacks by callers without a key, or with the key of another instance, each from a process of its own, while a caller with a
 * key calls. `npm run test:attacks` also judges how long that caller's calls take. Here other tests would delay them.
 */

const ATTACK_MS = 2_500
/** Holding 1,000 bodies or 1,700 unread documents would take a multiple of this. */
const MORE_MIB = 250
/** First, because a service keeps the memory that it allocated during an earlier attack. */
const OF_MEMORY: readonly AttackName[] = ['held-bodies', 'unread-documents']
const NAMES = [...new Set([...OF_MEMORY, ...(Object.keys(ATTACKS) as AttackName[])])]
/** Attacks whose requests reach the store. */
const OF_THE_STORE: readonly AttackName[] = ['slow-bodies', 'guessed-keys', 'guessed-passwords']

const CASES: readonly [StoreKind, readonly AttackName[]][] = [
  ['sqlite', NAMES],
  ['postgres', OF_THE_STORE],
]

describe.each(CASES)('on %s a caller with a key is served during', (kind, names) => {
  let database: TestDatabase
  let harness: AttackHarness
  beforeAll(async () => {
    database = await createDatabase(kind, inject('postgresUrl'))
    harness = await AttackHarness.start(CONDITION_WITHIN_MS, database.env)
  })
  afterAll(async () => {
    await harness?.dispose()
    await database?.dispose()
  })

  test.each(names)('%s', { timeout: TEST_WITHIN_MS }, async name => {
    const { refused, calls, grewMib } = await harness.under(name, ATTACK_MS, async () => {
      // The operator can see what happens, and sign in.
      expect((await fetch(`${harness.service.url}/readyz`)).status).toBe(200)
      expect((await fetch(harness.metricsUrl)).status).toBe(200)
      await harness.service.admin.setPassword('another password that nobody guesses')
      const signedIn = await harness.post('/admin/v1/session', { key: harness.service.adminKey })
      expect(signedIn.status).toBe(200)
      const listed = await fetch(`${harness.service.url}/admin/v1/instances`, {
        headers: { cookie: signedIn.headers.get('set-cookie')?.split(';')[0] ?? '' },
      })
      expect(listed.status).toBe(200)
    })
    expect(calls).toBe(50)
    expect(refused).toEqual([])
    expect(grewMib).toBeLessThan(MORE_MIB)
  })
})
