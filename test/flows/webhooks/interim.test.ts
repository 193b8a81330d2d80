import { expect, onTestFinished, test } from 'vitest'
import { TEST_WITHIN_MS } from '../../deadlines.ts'
import { startFloodConsumer } from '../../flood-consumer.ts'
import { startService } from '../../service.ts'
import { until } from '../../until.ts'

const CALLS = 40
const ATTACKERS = 8
const EVENTS = 10

/** The median of the calls' durations: one burst of other work on the machine does not change it, a flood does. */
async function medianOf(calls: number, call: () => Promise<unknown>): Promise<number> {
  const tookMs: number[] = []
  for (let count = 0; count < calls; count += 1) {
    const begunAt = performance.now()
    await call()
    tookMs.push(performance.now() - begunAt)
  }
  return tookMs.sort((a, b) => a - b)[Math.floor(calls / 2)]!
}

test(
  'a consumer that sends endless interim answers delays no caller',
  async () => {
    const flood = await startFloodConsumer()
    onTestFinished(async () => void (await flood.stop()))
    const env = { WEBHOOK_RETRY_DELAYS_MS: '100,100,100,100,100' }
    const service = await startService({ env })
    onTestFinished(() => service.dispose())
    const other = await service.admin.createConnected()
    const caller = service.instance(other.id, other.token)
    const quietMs = await medianOf(CALLS, () => caller.instance())

    for (let attackers = 0; attackers < ATTACKERS; attackers += 1) {
      const { id, token } = await service.admin.createConnected()
      await service.instance(id, token).setWebhook(flood.url)
      for (let count = 0; count < EVENTS; count += 1) {
        await service.admin.writeAsContact(id, { from: '351912345678', text: 'hello' })
      }
    }
    await until('requests from every attacker', () => flood.requests() >= ATTACKERS)
    const floodedMs = await medianOf(CALLS, () => caller.instance())
    // The limit allows for a machine that is busy with other work.
    expect(floodedMs).toBeLessThan(Math.max(500, 20 * quietMs))
  },
  TEST_WITHIN_MS,
)
