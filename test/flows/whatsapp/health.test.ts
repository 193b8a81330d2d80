import { describe, expect, test } from 'vitest'
import type { ConnectionHealth } from '../../../src/store/connections/connections.ts'
import { CONDITION_WITHIN_MS } from '../../deadlines.ts'
import { until } from '../../until.ts'
import { WhatsappHarness } from './harness.ts'

/** The reported health of a connection. */

const CONTACT = '5511987654321'

async function openHarness() {
  const harness = await WhatsappHarness.open()
  const linked = await harness.link()
  const untilHealth = (what: string, test: (health: ConnectionHealth) => boolean) =>
    until(`the health to show ${what}`, async () => {
      const health = await harness.store.connections.findHealth(linked.id, Date.now())
      return test(health) && health
    })
  return { ...linked, harness, untilHealth, [Symbol.asyncDispose]: () => harness[Symbol.asyncDispose]() }
}

describe.concurrent('the health of a connection', () => {
  test('reports each close immediately, with the activity before it', async () => {
    await using world = await openHarness()
    const { harness, id, phone, untilHealth } = world
    const startedAt = Date.now()
    const { id: message } = await harness.accept(id, CONTACT, 'x')
    await harness.becomes(id, message, 'read')
    await harness.network.misbehave({ kind: 'stream_error', account: phone, code: '503' })
    const { closes, lastFrameAt, acknowledgement } = await untilHealth('the close', health => health.closes.length > 1)
    expect(closes.map(({ code, count }) => [code, count])).toEqual([
      [503, 1],
      // After linking.
      [515, 1],
    ])
    expect(lastFrameAt).toBeGreaterThanOrEqual(startedAt)
    expect(acknowledgement?.at).toBeGreaterThanOrEqual(startedAt)
    expect(acknowledgement?.latencyMs).toBeLessThan(CONDITION_WITHIN_MS)
    const { state, cause, retryAt } = (await harness.store.connections.find(id))!
    expect([state, cause]).toEqual(['reconnecting', 'unavailable'])
    expect(retryAt).toBeGreaterThan(Date.now())
  })

  test('counts undecryptable messages, across a restart too', async () => {
    await using world = await openHarness()
    const { harness, id, phone, connection, untilHealth } = world
    const garbled = { stanza: 'message', direction: 'out', times: 1 } as const
    const receive = async (count: number) => {
      await harness.network.misbehave({ kind: 'rule', rule: { when: garbled, do: 'garble' } })
      await harness.network.misbehave({ kind: 'write', from: CONTACT, to: phone, text: 'x', count: 1 })
      await until('the message', async () => (await harness.receivedIds(id)).length === count)
    }
    await receive(1)
    await harness.stop(connection)
    const first = await untilHealth('the message', ({ undecryptable }) => undecryptable === 1)
    expect(first.lastUndecryptableAt).toBeGreaterThan(0)
    const again = await harness.connect(id)
    await harness.reaches(id, 'connected')
    await receive(2)
    await harness.stop(again)
    await untilHealth('both messages', ({ undecryptable }) => undecryptable === 2)
  })
})
