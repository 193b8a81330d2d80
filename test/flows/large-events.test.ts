import { expect, inject, test } from 'vitest'
import { createDatabase } from '../databases/database.ts'
import { insertEvents } from '../databases/insert-events.ts'
import { ONE_STORE } from '../databases/one-store.ts'
import { TEST_WITHIN_MS } from '../deadlines.ts'
import { Service } from '../service.ts'

const EVENTS = 200
const LARGE = 1_000_000
const ROUNDS = 5
/** Real time: another caller asks while a list is under way, and its delay is measured. */
const PAUSE_MS = 5

test.each(ONE_STORE)(
  'on %s, listing 200 events with 1 MB texts takes as long as listing 200 small ones, for the caller and for others',
  async store => {
    const database = await createDatabase(store, inject('postgresUrl'))
    const service = new Service({ env: database.env })
    try {
      await service.start()
      const measure = async (length: number, form: 'old' | 'new') => {
        const { id, token } = await service.admin.createInstance('whatsapp')
        for (const statement of insertEvents(store, id, { count: EVENTS, length, form }))
          await database.run(statement, service.dataDir)
        const lists: number[] = []
        const waits: number[] = []
        for (let round = 0; round < ROUNDS; round++) {
          const startedAt = performance.now()
          const listed = service.admin.listEvents(id, '?limit=200')
          await new Promise(resolve => setTimeout(resolve, PAUSE_MS))
          const askedAt = performance.now()
          await service.instance(id, token).instance()
          waits.push(performance.now() - askedAt)
          const events = await listed
          lists.push(performance.now() - startedAt)
          expect(events).toHaveLength(EVENTS)
        }
        // The minimum, because other load on the machine only adds to it.
        return { list: Math.min(...lists), wait: Math.min(...waits) }
      }
      const small = await measure(100, 'new')
      for (const form of ['new', 'old'] as const) {
        const large = await measure(LARGE, form)
        console.log(`${store}, ${form}: ${JSON.stringify({ small, large })}`)
        expect(large.list).toBeLessThan(5 * small.list + 100)
        expect(large.wait).toBeLessThan(5 * small.wait + 100)
      }
    } finally {
      await service.dispose()
      await database.dispose()
    }
  },
  TEST_WITHIN_MS,
)
