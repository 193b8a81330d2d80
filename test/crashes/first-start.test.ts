import { setTimeout as sleep } from 'node:timers/promises'
import { expect, inject, test } from 'vitest'
import { createDatabase, STORES } from '../databases/database.ts'
import { TEST_WITHIN_MS } from '../deadlines.ts'
import { newSeed, Random } from '../rig/random.ts'
import { Service } from '../service.ts'

const TRIES = 3

test.each(STORES)(
  'on %s a service that was killed during its first start serves after the next start',
  async store => {
    const seed = Number(process.env['CRASH_SEED'] ?? newSeed())
    console.log(`first start on ${store}: CRASH_SEED=${seed}`)
    const random = new Random(seed)
    let startUpMs = 0
    for (let n = 0; n <= TRIES; n++) {
      const database = await createDatabase(store, inject('postgresUrl'))
      const service = new Service({ env: database.env })
      try {
        const startedAt = performance.now()
        if (n === 0) {
          await service.start()
          startUpMs = performance.now() - startedAt
          continue
        }
        service.boot()
        // Keys, lock and tables are made in its second half, when the program is loaded.
        await sleep(random.between(startUpMs / 2, startUpMs))
        await service.kill('SIGKILL')
        await service.start()
        const { id } = await service.admin.createInstance('whatsapp')
        expect(await service.admin.connection(id)).toMatchObject({ state: 'unlinked' })
      } finally {
        await service.dispose()
        await database.dispose()
      }
    }
  },
  TEST_WITHIN_MS,
)
