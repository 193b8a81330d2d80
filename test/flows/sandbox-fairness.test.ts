import { expect, onTestFinished, test } from 'vitest'
import { startService } from '../service.ts'
import { until } from '../until.ts'

/** Each message goes to another number with keys of its own: minutes of work for the simulated network. */
const MESSAGES = 600
const AT_ONCE = 150
const TURNS = 20
const WITHIN_MS = 180_000

test(
  'a sandbox instance with many messages does not delay another one',
  async () => {
    const service = await startService({ env: { LOG_LEVEL: 'info' } })
    onTestFinished(() => service.dispose())
    const [busy, other] = [await service.admin.createConnected(), await service.admin.createConnected()]
    const [sender, caller] = [busy, other].map(({ id, token }) => service.instance(id, token))

    /** The time for one incoming and one sent text, the median of several turns. */
    async function usual(): Promise<number> {
      const tookMs: number[] = []
      for (let turn = 0; turn < TURNS; turn += 1) {
        const begunAt = performance.now()
        await service.admin.writeAsContact(other.id, { from: '5511987650001', text: 'hello' })
        const { id } = await caller!.send('5511987650001', 'hello')
        await until('the text to be sent', async () => (await caller!.message(id)).sentAt !== null, WITHIN_MS)
        tookMs.push(performance.now() - begunAt)
      }
      return tookMs.toSorted((a, b) => a - b)[TURNS / 2]!
    }

    const quietMs = await usual()
    const numbers = Array.from({ length: MESSAGES }, (_, index) => `55119${80_000_000 + index}`)
    const sent: { id: string }[] = []
    // Fewer than an instance may have open at once.
    for (let from = 0; from < MESSAGES; from += AT_ONCE) {
      const next = numbers.slice(from, from + AT_ONCE)
      sent.push(...(await Promise.all(next.map(number => sender!.send(number, 'hello')))))
    }
    const besideMs = await usual()
    expect((await sender!.message(sent.at(-1)!.id)).sentAt).toBe(null)
    // The limit is large because the thread of the connections, which both share, is busy as well.
    expect(besideMs).toBeLessThan(Math.max(3_000, 15 * quietMs))
  },
  2 * WITHIN_MS,
)
