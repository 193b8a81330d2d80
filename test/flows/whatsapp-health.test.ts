import { describe, expect, test } from 'vitest'
import type { ConnectionHealth } from '../../src/store/connections/connections.ts'
import { until } from '../until.ts'
import { Stage } from './whatsapp-stage.ts'

/** The reported health of a connection. */

const CONTACT = '5511987654321'

async function openStage() {
  const stage = await Stage.open()
  const linked = await stage.link()
  const tells = (what: string, test: (health: ConnectionHealth) => boolean) =>
    until(`the health to tell of ${what}`, async () => {
      const health = await stage.store.connections.findHealth(linked.id, Date.now())
      return test(health) && health
    })
  return { ...linked, stage, tells, [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose]() }
}

describe.concurrent('the health of a connection', () => {
  test('reports each close at once, with the activity before it', async () => {
    await using world = await openStage()
    const { stage, id, phone, tells } = world
    const startedAt = Date.now()
    const { id: message } = await stage.accept(id, CONTACT, 'x')
    await stage.becomes(id, message, 'read')
    await stage.network.misbehave({ kind: 'stream_error', account: phone, code: '503' })
    const { closes, lastFrameAt, acknowledgement } = await tells('the close', health => health.closes.length > 1)
    expect(closes.map(({ code, count }) => [code, count])).toEqual([
      [503, 1],
      // After linking.
      [515, 1],
    ])
    expect(lastFrameAt).toBeGreaterThanOrEqual(startedAt)
    expect(acknowledgement?.at).toBeGreaterThanOrEqual(startedAt)
    expect(acknowledgement?.latencyMs).toBeLessThan(20_000)
    const { state, cause, retryAt } = (await stage.store.connections.find(id))!
    expect([state, cause]).toEqual(['reconnecting', 'unavailable'])
    expect(retryAt).toBeGreaterThan(Date.now())
  })

  test('counts undecryptable messages, over a restart too', async () => {
    await using world = await openStage()
    const { stage, id, phone, connection, tells } = world
    const garbled = { stanza: 'message', direction: 'out', times: 1 } as const
    const receive = async (count: number) => {
      await stage.network.misbehave({ kind: 'rule', rule: { when: garbled, do: 'garble' } })
      await stage.network.misbehave({ kind: 'write', from: CONTACT, to: phone, text: 'x', count: 1 })
      await until('the message', async () => (await stage.receivedIds(id)).length === count)
    }
    await receive(1)
    await stage.stop(connection)
    const first = await tells('the message', ({ undecryptable }) => undecryptable === 1)
    expect(first.lastUndecryptableAt).toBeGreaterThan(0)
    const again = await stage.connect(id)
    await stage.reaches(id, 'connected')
    await receive(2)
    await stage.stop(again)
    await tells('both messages', ({ undecryptable }) => undecryptable === 2)
  })
})
