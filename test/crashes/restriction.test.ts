import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { LONG_TEST_WITHIN_MS } from '../deadlines.ts'
import { LinkedHarness } from '../linked-harness.ts'
import { newSeed, Random } from '../rig/random.ts'
import { until } from '../until.ts'

const KNOWN = '5511987654321'
const KILLS = 2
/** A kill comes at a random moment while WhatsApp refuses the strangers' messages. */
const KILL_WITHIN_MS = 400

test(
  'kill -9 while WhatsApp restricts the number: no message to a stranger is lost, or sent after it failed',
  async () => {
    const seed = Number(process.env['CRASH_SEED'] ?? newSeed())
    console.log(`kills under a restriction: CRASH_SEED=${seed}`)
    const random = new Random(seed)
    await using harness = await LinkedHarness.open('sqlite')
    const { network, service } = harness
    const { id, phone, instance } = await harness.link()
    const ends = (message: string, ...states: string[]) =>
      until(`${message} to be ${states.join(' or ')}`, async () => {
        const found = await instance.message(message)
        return states.includes(found.status) && found
      })
    await ends((await instance.send(KNOWN, 'before the restriction')).id, 'read')

    await network.misbehave({ kind: 'restrict', account: phone, seconds: 3_600, notify: false })
    const strangers: { to: string; id: string }[] = []
    for (let kill = 0; kill < KILLS; kill++) {
      for (let n = 0; n < 3; n++) {
        const to = `5511900000${kill}${n}0`
        strangers.push({ to, id: (await instance.send(to, `to stranger ${kill}.${n}`)).id })
      }
      await sleep(random.between(0, KILL_WITHIN_MS))
      await service.kill('SIGKILL')
      await service.start()
      await service.admin.untilState(id, 'connected')
    }
    await ends((await instance.send(KNOWN, 'during the restriction')).id, 'read')
    for (const { to } of strangers) expect(await network.inbox(to)).toEqual([])

    await network.misbehave({ kind: 'restrict', account: phone, seconds: null })
    for (const { to, id: message } of strangers) {
      const { status } = await ends(message, 'read', 'failed')
      expect((await network.inbox(to)).length).toBe(status === 'read' ? 1 : 0)
    }
  },
  LONG_TEST_WITHIN_MS,
)
