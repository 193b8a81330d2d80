import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { LONG_TEST_WITHIN_MS } from '../../deadlines.ts'
import { LinkedHarness } from '../../linked-harness.ts'
import { newSeed, Random } from '../../rig/random.ts'
import { until } from '../../until.ts'
import { sha256 } from './harness.ts'
import { sampleFile } from './sample-files.ts'

const KILLS = 6
/** An upload and a send take about half of this. */
const KILL_WITHIN_MS = 500
const FORMS = ['image', 'voice', 'document'] as const

test(
  'kill -9 while files are uploaded and sent: each is shown once, with its content',
  async () => {
    const seed = Number(process.env['CRASH_SEED'] ?? newSeed())
    console.log(`kills while files are sent: CRASH_SEED=${seed}`)
    const random = new Random(seed)
    await using harness = await LinkedHarness.open('sqlite')
    const { network, service } = harness
    const { id, instance } = await harness.link()
    for (let kill = 0; kill < KILLS; kill += 1) {
      const sent: { to: string; message: string; hash: string }[] = []
      for (const [n, as] of FORMS.entries()) {
        const to = `55119870${kill}00${n}0`
        const { bytes } = sampleFile(as, random.integer(1, 500_000))
        const { id: message } = await instance.sendFile(to, bytes, { as })
        sent.push({ to, message, hash: sha256(bytes) })
      }
      await sleep(random.between(0, KILL_WITHIN_MS))
      await service.kill('SIGKILL')
      await service.start()
      await service.admin.untilState(id, 'connected')
      for (const { to, message, hash } of sent) {
        const isRead = async () => (await instance.message(message)).status === 'read'
        await until(`${message} to be read after kill ${kill}`, isRead)
        expect((await network.inbox(to)).map(({ media }) => media?.sha256)).toEqual([hash])
      }
    }
  },
  LONG_TEST_WITHIN_MS,
)
