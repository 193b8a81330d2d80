import { describe, expect, inject, test } from 'vitest'
import { newWebhookSecret } from '../../../src/api/admin/secrets.ts'
import { DEFAULT_ENDPOINT } from '../../../src/domain/events/endpoint.ts'
import { newEndpointId } from '../../../src/domain/ids.ts'
import type { EndpointSettings } from '../../../src/store/endpoints/endpoints.ts'
import { ONE_STORE } from '../../databases/one-store.ts'
import { createReceiver, eventOf, isSigned, type Receiver } from '../../receiver.ts'
import { until } from '../../until.ts'
import { type HarnessSettings, type TestInstance, WebhookHarness } from './harness.ts'

const HOUR_MS = 3_600_000

describe.each(ONE_STORE)('endpoints on %s', kind => {
  const openHarness = (settings: Partial<HarnessSettings> = {}) =>
    WebhookHarness.open(kind, inject('postgresUrl'), settings)

  async function addEndpoint(
    { store }: WebhookHarness,
    { id: instanceId }: TestInstance,
    url: string,
    settings: Partial<EndpointSettings> = {},
  ): Promise<{ id: string; secret: string }> {
    const named = { id: newEndpointId(), secret: newWebhookSecret() }
    const defaults = { events: ['*'], active: true, description: null }
    const outcome = await store.endpoints.create({ ...named, instanceId, url, ...defaults, ...settings }, Date.now())
    expect(outcome.kind).toBe('created')
    return named
  }

  const idsAt = ({ requests }: Receiver) => requests.map(request => eventOf(request).data.id)

  test('each gets every event that its filter names, in order, signed with its own secret', async () => {
    await using harness = await openHarness()
    await using first = await createReceiver()
    await using second = await createReceiver()
    await using reads = await createReceiver()
    const instance = await harness.addInstance(first.url)
    const other = await addEndpoint(harness, instance, second.url)
    await addEndpoint(harness, instance, reads.url, { events: ['message.read'] })
    await instance.sendAndRead()
    await Promise.all([first.waitFor(3), second.waitFor(3), reads.waitFor(1)])
    const kinds = ({ requests }: Receiver) => requests.map(request => eventOf(request).event)
    for (const receiver of [first, second])
      expect(kinds(receiver)).toEqual(['message.sent', 'message.delivered', 'message.read'])
    expect(kinds(reads)).toEqual(['message.read'])
    expect(first.requests.every(request => isSigned(request, instance.secret))).toBe(true)
    expect(second.requests.every(request => isSigned(request, other.secret))).toBe(true)
    const ids = ({ requests }: Receiver) => requests.map(({ headers }) => headers['webhook-id'])
    expect(ids(second)).toEqual(ids(first))
  })

  test('an endpoint that fails is retried alone, and its order does not delay another one', async () => {
    await using harness = await openHarness({ retryDelaysMs: [50, 50] })
    await using alive = await createReceiver()
    await using failing = await createReceiver()
    failing.answerWith(({ index }) => ({ kind: 'status', status: index < 2 ? 500 : 200 }))
    const instance = await harness.addInstance(alive.url)
    await addEndpoint(harness, instance, failing.url)
    await instance.sendAndRead()
    await alive.waitFor(3)
    await failing.waitFor(5)
    const attempts = failing.requests.map(request => [
      eventOf(request).event.split('.')[1],
      request.headers['x-service-attempt'],
    ])
    expect(attempts).toEqual([
      ['sent', '1'],
      ['sent', '2'],
      ['sent', '3'],
      ['delivered', '1'],
      ['read', '1'],
    ])
    expect(alive.requests).toHaveLength(3)
  })

  test('a paused endpoint gets nothing; once resumed, even after a restart, it gets all events', async () => {
    await using harness = await openHarness()
    await using alive = await createReceiver()
    await using paused = await createReceiver()
    const instance = await harness.addInstance(alive.url)
    const { id } = await addEndpoint(harness, instance, paused.url)
    const ids = [await instance.receive()]
    await paused.waitFor(1)
    const change = (active: boolean) => harness.store.endpoints.change(instance.id, id, { active })
    await change(false)
    for (let count = 0; count < 5; count += 1) ids.push(await instance.receive())
    await alive.waitFor(6)
    await harness.restart()
    ids.push(await instance.receive())
    await alive.waitFor(7)
    expect(paused.requests).toHaveLength(1)
    await change(true)
    await paused.waitFor(7)
    expect(idsAt(paused).toSorted()).toEqual(ids.toSorted())
  })

  test('the deliveries of a deleted endpoint are completed, and no later event goes to it', async () => {
    await using harness = await openHarness({ retryDelaysMs: [50, 50, 50] })
    await using alive = await createReceiver()
    await using deleted = await createReceiver()
    const instance = await harness.addInstance(alive.url)
    const { id } = await addEndpoint(harness, instance, deleted.url, { active: false })
    const kept = await instance.receive()
    await alive.waitFor(1)
    expect(deleted.requests).toHaveLength(0)
    deleted.answerWith(({ index }) => ({ kind: 'status', status: index < 2 ? 500 : 200 }))
    await harness.store.endpoints.delete(instance.id, id, Date.now())
    await instance.receive()
    await alive.waitFor(2)
    await deleted.waitFor(3)
    await instance.untilAll('delivered')
    expect(idsAt(deleted)).toEqual([kept, kept, kept])
  })

  test('a retry on request carries the number that is due next; if it fails, the schedule is unchanged', async () => {
    await using harness = await openHarness({ retryDelaysMs: [HOUR_MS] })
    await using receiver = await createReceiver()
    receiver.answerWith({ kind: 'status', status: 500 })
    const instance = await harness.addInstance(receiver.url)
    await instance.receive()
    const retrying = async () => {
      const [event] = await instance.log()
      return event?.delivery?.attempts === 1 ? event : undefined
    }
    const { id, delivery } = await until('the retry', retrying)
    const retry = (at: number) => harness.store.deliveries.retryNow(instance.id, id, Number(delivery!.id), at)
    const now = Date.now()
    expect((await retry(now)).kind).toBe('requested')
    await receiver.waitFor(2)
    const recorded = async () => (await instance.log())[0]!.deliveries[0]!.log.length === 2
    await until('the record', recorded)
    expect((await instance.log())[0]!.delivery).toMatchObject({ attempts: 1, nextAttemptAt: delivery!.nextAttemptAt })
    receiver.answerWith({ kind: 'status', status: 200 })
    expect((await retry(now + 10_000)).kind).toBe('requested')
    await instance.untilAll('delivered')
    expect(receiver.requests.map(({ headers }) => headers['x-service-attempt'])).toEqual(['1', '2', '2'])
  })

  test('retry all posts a backlog through the slots in the order of the events, even if the node is killed meanwhile', async () => {
    await using harness = await openHarness({ retryDelaysMs: [HOUR_MS] })
    await using receiver = await createReceiver()
    receiver.answerWith({ kind: 'status', status: 500 })
    const instance = await harness.addInstance(receiver.url)
    await instance.receiveMany(100)
    const waiting = async () => {
      const { data } = await harness.store.events.list(instance.id, { limit: 200 })
      return data.every(({ delivery }) => delivery?.attempts === 1) && data
    }
    const events = await until('all to wait', waiting)
    // The request is committed while no lane runs, as if the node had been killed after it.
    await harness.stopLanes(0)
    expect(await harness.store.deliveries.retryAllNow(instance.id, DEFAULT_ENDPOINT, Date.now())).toBe(100)
    receiver.answerWith({ kind: 'status', status: 200 })
    const before = receiver.requests.length
    harness.startLanes()
    await instance.untilAll('delivered')
    const retried = receiver.requests.slice(before).map(({ headers }) => String(headers['webhook-id']))
    const inOrder = events.map(({ id }) => id).toSorted()
    expect(retried.toSorted()).toEqual(inOrder)
    // Eight at a time may overtake one another.
    for (const [index, id] of retried.entries()) expect(Math.abs(inOrder.indexOf(id) - index)).toBeLessThan(16)
    expect(receiver.mostOpen).toBeLessThanOrEqual(8)
  })

  test('after a kill during the fan-out, every endpoint gets every event', async () => {
    await using harness = await openHarness({ retryDelaysMs: [20, 20, 20] })
    await using first = await createReceiver()
    await using second = await createReceiver()
    await using third = await createReceiver()
    const instance = await harness.addInstance(first.url)
    await addEndpoint(harness, instance, second.url)
    await addEndpoint(harness, instance, third.url)
    const receivers = [first, second, third]
    const ids: string[] = []
    for (let round = 0; round < 4; round += 1) {
      const recording = Array.from({ length: 30 }, async () => ids.push(await instance.receive()))
      await second.waitFor(second.requests.length + 5)
      // Attempts in flight are aborted, and their outcome is not recorded.
      await harness.stopLanes(0)
      await Promise.all(recording)
      harness.startLanes()
    }
    await instance.untilAll('delivered')
    for (const receiver of receivers) {
      await until('every event', () => new Set(idsAt(receiver)).size === ids.length)
      expect(new Set(idsAt(receiver))).toEqual(new Set(ids))
    }
  })

  test('while nine endpoints hang, fail or refuse, the tenth gets every event', async () => {
    await using harness = await openHarness({ timeoutMs: HOUR_MS, retryDelaysMs: [50, HOUR_MS] })
    await using alive = await createReceiver()
    await using hanging = await createReceiver()
    await using failing = await createReceiver()
    hanging.answerWith({ kind: 'hang' })
    failing.answerWith({ kind: 'status', status: 500 })
    const instance = await harness.addInstance(alive.url)
    const urls = [hanging.url, failing.url, 'http://127.0.0.1:1/']
    for (let index = 0; index < 9; index += 1) await addEndpoint(harness, instance, urls[index % 3]!)
    const ids: string[] = []
    for (let count = 1; count <= 20; count += 1) {
      ids.push(await instance.receive())
      await alive.waitFor(count)
    }
    const slots = 3 * 6
    await hanging.waitFor(slots)
    ids.push(...(await Promise.all(Array.from({ length: 100 }, () => instance.receive()))))
    await alive.waitFor(ids.length)
    expect(idsAt(alive).slice(0, 20)).toEqual(ids.slice(0, 20))
    expect(idsAt(alive).toSorted()).toEqual(ids.toSorted())
    // A delivery that waited for one of these requests would wait for an hour.
    expect([hanging.requests.length, hanging.openNow]).toEqual([slots, slots])
    hanging.answerWith({ kind: 'status', status: 200 })
    hanging.release()
  })
})
