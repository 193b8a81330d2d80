import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { expect, inject, test } from 'vitest'
import { createDatabase, STORES } from '../../databases/database.ts'
import { LONG_TEST_WITHIN_MS } from '../../deadlines.ts'
import { newSeed, Random } from '../../rig/random.ts'
import { Service } from '../../service.ts'
import { until } from '../../until.ts'
import { filesIn, MediaClient, png, sha256 } from './harness.ts'

const KILLS = 4
const UPLOADERS = 2

/** Uploads until the service is gone. @param accepted gets the hash of every file that was answered with 201, by ID */
async function uploadUntilKilled(client: MediaClient, random: Random, accepted: Map<string, string>): Promise<void> {
  for (;;) {
    const bytes = png(random.integer(1, 400_000))
    const answer = await client.upload(bytes).catch(() => null)
    if (answer === null) return
    if (answer.status === 201) accepted.set(answer.body.data.id, sha256(bytes))
  }
}

test.each(STORES)(
  'on %s a file whose upload was answered survives every kill, and nothing stays of the others',
  async store => {
    const seed = Number(process.env['CRASH_SEED'] ?? newSeed())
    console.log(`media on ${store}: CRASH_SEED=${seed}`)
    const random = new Random(seed)
    const database = await createDatabase(store, inject('postgresUrl'))
    const service = new Service()
    const folder = join(service.dataDir, 'media')
    const env = { ...database.env, RATE_LIMIT_PER_MINUTE: '1000000', MEDIA_URL: pathToFileURL(folder).href }
    const running = new Service({ dataDir: service.dataDir, env })
    try {
      await running.start()
      const instance = await running.admin.createInstance('whatsapp')
      const accepted = new Map<string, string>()
      for (let n = 0; n < KILLS; n += 1) {
        const client = new MediaClient(running.url!, instance)
        const before = accepted.size
        const uploads = Array.from({ length: UPLOADERS }, () => uploadUntilKilled(client, random.fork(), accepted))
        await until('two answers', () => accepted.size >= before + 2)
        await sleep(random.between(0, 700))
        await running.kill('SIGKILL')
        await Promise.all(uploads)
        await running.start()
      }
      const client = new MediaClient(running.url!, instance)
      for (const [id, hash] of accepted) expect(sha256((await client.download(id)).bytes)).toBe(hash)

      // On PostgreSQL a writer counts as gone after 5 minutes.
      await database.run("update media_files set due_at = 0 where state = 'writing'", running.dataDir)
      await running.admin.deleteInstance(instance.id)
      await until('all files to be removed', () => filesIn(folder).length === 0)
      await until('all rows to be erased', async () => (await database.countRowsOf(instance.id, running.dataDir)) === 0)
    } finally {
      await running.dispose()
      await service.dispose()
      await database.dispose()
    }
  },
  LONG_TEST_WITHIN_MS,
)
