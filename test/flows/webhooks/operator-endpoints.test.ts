import { describe, expect, inject, test } from 'vitest'
import { newWebhookSecret } from '../../../src/api/admin/secrets.ts'
import { OPERATOR_PREFIX } from '../../../src/domain/events/endpoint.ts'
import { newEndpointId } from '../../../src/domain/ids.ts'
import type { EndpointSettings } from '../../../src/store/endpoints/endpoints.ts'
import { ONE_STORE } from '../../databases/one-store.ts'
import { createReceiver, eventOf, isSigned, type Receiver } from '../../receiver.ts'
import { until } from '../../until.ts'
import { type HarnessSettings, type TestInstance, WebhookHarness } from './harness.ts'

const STOPPED = { state: 'stopped', cause: 'banned', reason: 'Banned.' } as const
const LINKING = { state: 'linking', cause: 'scan_qr_code', reason: 'Scan.' } as const

describe.each(ONE_STORE)('operator endpoints on %s', kind => {
  const openHarness = (settings: Partial<HarnessSettings> = {}) =>
    WebhookHarness.open(kind, inject('postgresUrl'), settings)

  async function addEndpoint({ store }: WebhookHarness, url: string, settings: Partial<EndpointSettings> = {}) {
    const named = { id: newEndpointId(OPERATOR_PREFIX), secret: newWebhookSecret() }
    const defaults = { events: ['instance.*'], active: true, description: null }
    const outcome = await store.operatorEndpoints.create({ ...named, url, ...defaults, ...settings }, Date.now())
    expect(outcome.kind).toBe('created')
    return named
  }

  /** Two events: the instance shows a QR code, and is then stopped. */
  async function stopNumber(harness: WebhookHarness, { id }: TestInstance): Promise<void> {
    for (const change of [LINKING, STOPPED])
      await harness.store.connections.record(harness.leaseOf(id), change, Date.now())
  }

  const seenBy = ({ requests }: Receiver, { id }: TestInstance) =>
    requests.map(eventOf).flatMap(event => (event.instanceId === id ? [event.event] : []))

  test('get the events about the connection of every instance, in order, signed with their own secret', async () => {
    await using harness = await openHarness()
    await using own = await createReceiver()
    await using operator = await createReceiver()
    const before = await harness.addInstance(own.url)
    const { secret } = await addEndpoint(harness, operator.url)
    const after = await harness.addInstance(own.url)
    for (const instance of [before, after]) {
      await instance.receive()
      await stopNumber(harness, instance)
    }
    await operator.waitFor(4)
    await own.waitFor(2)
    for (const instance of [before, after]) {
      await instance.receive()
      expect(seenBy(operator, instance)).toEqual(['instance.linking', 'instance.stopped'])
    }
    await own.waitFor(4)
    expect(operator.requests).toHaveLength(4)
    expect(operator.requests.every(request => isSigned(request, secret))).toBe(true)
    expect(own.requests.map(request => eventOf(request).event)).toEqual(Array(4).fill('message.received'))
  })

  test('while one is dead, the webhooks of the instances continue, and a restart continues its retries', async () => {
    await using harness = await openHarness({ retryDelaysMs: [50, 50, 3_600_000] })
    await using own = await createReceiver()
    await using operator = await createReceiver()
    operator.answerWith(() => ({ kind: 'status', status: 500 }))
    const instance = await harness.addInstance(own.url)
    const { id } = await addEndpoint(harness, operator.url)
    await stopNumber(harness, instance)
    await operator.waitFor(6)
    await instance.receive()
    await own.waitFor(1)
    const count = async () => (await harness.store.operatorEndpoints.countDeliveries(id, 0)).retrying
    await until('both events to wait', async () => (await count()) === 2)
    await harness.restart()
    operator.answerWith(() => ({ kind: 'status', status: 200 }))
    expect(await harness.store.operatorEndpoints.listWaiting(id)).toEqual([instance.id])
    await until('both retries to be possible', async () => {
      await harness.store.deliveries.retryAllNow(instance.id, id, harness.store.clock.steady())
      return (await count()) === 0
    })
    expect(seenBy(operator, instance).slice(-2)).toEqual(['instance.linking', 'instance.stopped'])
    expect(own.requests).toHaveLength(1)
  })

  test('a paused one keeps its deliveries until it is resumed, and a deleted one completes them', async () => {
    await using harness = await openHarness()
    await using own = await createReceiver()
    await using operator = await createReceiver()
    const instance = await harness.addInstance(own.url)
    const { id } = await addEndpoint(harness, operator.url, { active: false })
    await stopNumber(harness, instance)
    await harness.restart()
    expect(operator.requests).toEqual([])
    await harness.store.operatorEndpoints.change(id, { active: true })
    await operator.waitFor(2)
    await harness.store.operatorEndpoints.change(id, { active: false })
    await stopNumber(harness, instance)
    await harness.store.operatorEndpoints.delete(id, Date.now())
    await operator.waitFor(4)
    expect(seenBy(operator, instance).slice(-2)).toEqual(['instance.linking', 'instance.stopped'])
  })
})
