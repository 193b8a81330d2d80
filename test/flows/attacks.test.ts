import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { ATTACKS, type AttackName } from '../attacks/attacks.ts'
import { AttackStage } from '../attacks/stage.ts'
import { createDatabase, type StoreKind, type TestDatabase } from '../database.ts'

/**
 * Attacks of callers without a key, each from a process of its own, while a caller with a key is measured. The times are
 * those of a busy machine: `npm run test:attacks` prints them.
 */

const ATTACK_MS = 2_500
const P95_WITHIN_MS = 10_000
/** Every one of 1,000 held bodies or 1,700 unread documents would take a multiple of it. */
const MORE_MIB = 250
/** First, because a service keeps the memory that an earlier attack made it ask for. */
const OF_MEMORY: readonly AttackName[] = ['held-bodies', 'unread-documents']
const NAMES = [...new Set([...OF_MEMORY, ...(Object.keys(ATTACKS) as AttackName[])])]
/** Those whose requests ask the store. */
const OF_THE_STORE: readonly AttackName[] = ['slow-bodies', 'guessed-keys', 'guessed-passwords']

const CASES: readonly [StoreKind, readonly AttackName[]][] = [
  ['sqlite', NAMES],
  ['postgres', OF_THE_STORE],
]

describe.each(CASES)('on %s a caller with a key is neither refused nor held up by', (kind, names) => {
  let database: TestDatabase
  let stage: AttackStage
  beforeAll(async () => {
    database = await createDatabase(kind, inject('postgresUrl'))
    stage = await AttackStage.start(database.env)
    await stage.measure(1_000)
  })
  afterAll(async () => {
    await stage?.dispose()
    await database?.dispose()
  })

  test.each(names)('%s', { timeout: 90_000 }, async name => {
    const { refused, calls, p95Ms, grewMib } = await stage.under(name, ATTACK_MS, async () => {
      // The operator can see what happens, and sign in.
      expect((await fetch(`${stage.service.url}/readyz`)).status).toBe(200)
      expect((await fetch(stage.metricsUrl)).status).toBe(200)
      await stage.service.admin.setPassword('another password that nobody guesses')
      const signedIn = await stage.post('/admin/v1/session', { key: stage.service.adminKey })
      expect(signedIn.status).toBe(200)
      const listed = await fetch(`${stage.service.url}/admin/v1/instances`, {
        headers: { cookie: signedIn.headers.get('set-cookie')?.split(';')[0] ?? '' },
      })
      expect(listed.status).toBe(200)
    })
    expect(calls).toBe(50)
    expect(refused).toEqual([])
    expect(p95Ms).toBeLessThan(P95_WITHIN_MS)
    expect(grewMib).toBeLessThan(MORE_MIB)
  })
})
