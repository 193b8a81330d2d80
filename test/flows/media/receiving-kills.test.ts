import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { LONG_TEST_WITHIN_MS } from '../../deadlines.ts'
import { LinkedHarness } from '../../linked-harness.ts'
import { newSeed, Random } from '../../rig/random.ts'
import { until } from '../../until.ts'
import { filesIn } from './harness.ts'
import { hashOf, newContact, type SentFile, sendFrom, untilSettled } from './receiving-harness.ts'

const KILLS = 8
const FILES_EACH = 3
/** Receiving and fetching takes about half of this. */
const KILL_WITHIN_MS = 600
const FORMS = ['image', 'voice', 'document'] as const

test(
  'kill -9 while files are received and fetched: each is there in the end, once, and nothing else is',
  async () => {
    const seed = Number(process.env['CRASH_SEED'] ?? newSeed())
    console.log(`kills while files are received: CRASH_SEED=${seed}`)
    const random = new Random(seed)
    await using harness = await LinkedHarness.open('sqlite')
    const number = await harness.link()
    const sent: (SentFile & { id: string })[] = []
    for (let kill = 0; kill < KILLS; kill += 1) {
      const sending = Array.from({ length: FILES_EACH }, (_, n) =>
        sendFrom(harness, number, newContact(), FORMS[n]!, { size: random.integer(1, 300_000) }),
      )
      await sleep(random.between(0, KILL_WITHIN_MS))
      await harness.service.kill('SIGKILL')
      sent.push(...(await Promise.all(sending)))
      await harness.service.start()
    }
    for (const { id, hash } of sent) {
      const events = await untilSettled(harness, number, id, 60_000)
      expect(events.map(({ event }) => event)).toEqual(['message.received', 'media.ready'])
      expect(await hashOf(harness, number, events[0]!.data.media.id)).toBe(hash)
    }
    await until('no other file', () => filesIn(`${harness.service.dataDir}/media`).length === sent.length)
  },
  LONG_TEST_WITHIN_MS,
)
