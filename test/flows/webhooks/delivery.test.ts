import { monitorEventLoopDelay } from 'node:perf_hooks'
import { describe, expect, inject, test } from 'vitest'
import { newWebhookSecret } from '../../../src/api/admin/secrets.ts'
import { DEFAULT_ENDPOINT } from '../../../src/domain/events/endpoint.ts'
import type { Store } from '../../../src/store/store.ts'
import { ONE_STORE } from '../../databases/one-store.ts'
import { createReceiver, eventOf, isSigned, isStandardSigned, type ReceivedRequest } from '../../receiver.ts'
import { until } from '../../until.ts'
import { type HarnessSettings, WebhookHarness } from './harness.ts'

const NANOSECONDS = 1e6
/** Enough on an idle machine. `dispatcher-schedule.test.ts` tests the exact times. */
const TOLERANCE_MS = 2_000

const idOf = (request: ReceivedRequest) => String(request.headers['webhook-id'])

describe.each(ONE_STORE)('webhooks on %s', kind => {
  const openHarness = (settings?: Partial<HarnessSettings>) =>
    WebhookHarness.open(kind, inject('postgresUrl'), settings)

  test('an event is posted immediately, with both valid signatures', async () => {
    await using harness = await openHarness()
    await using receiver = await createReceiver()
    const instance = await harness.addInstance(receiver.url)
    const id = await instance.receive('Olá 🕊️\nlinha 2')
    await receiver.waitFor(1)
    const request = receiver.requests[0]!
    expect(eventOf(request)).toEqual({
      event: 'message.received',
      instanceId: instance.id,
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      data: {
        id,
        messageId: expect.stringMatching(/^msg_/),
        from: '351912345678',
        chat: '351912345678',
        phone: '351912345678',
        lid: null,
        username: null,
        type: 'text',
        text: 'Olá 🕊️\nlinha 2',
      },
    })
    expect(request.headers).toMatchObject({
      'content-type': 'application/json',
      'user-agent': 'Pombal/0.0.0',
      'x-service-event': 'message.received',
      'x-service-attempt': '1',
      'webhook-id': expect.stringMatching(/^evt_/),
    })
    expect(isSigned(request, instance.secret)).toBe(true)
    expect(isStandardSigned(request, instance.secret)).toBe(true)
    const [event] = await instance.untilAll('delivered')
    expect(event?.deliveries[0]?.log).toMatchObject([{ attemptNumber: 1, status: 200, error: null }])
  })

  test('six attempts with the gaps of the schedule, the same bytes and id, then exhausted', async () => {
    const delays = [100, 200, 300, 400, 500]
    await using harness = await openHarness({ retryDelaysMs: delays })
    await using receiver = await createReceiver()
    receiver.answerWith({ kind: 'status', status: 503, body: 'later', headers: { 'retry-after': '3600' } })
    const instance = await harness.addInstance(receiver.url)
    const loop = monitorEventLoopDelay({ resolution: 5 })
    loop.enable()
    await instance.receive()
    const [event] = await instance.untilAll('exhausted')
    loop.disable()
    const { requests } = receiver
    expect(requests.map(({ headers }) => headers['x-service-attempt'])).toEqual(['1', '2', '3', '4', '5', '6'])
    expect(new Set(requests.map(idOf)).size).toBe(1)
    expect(new Set(requests.map(({ body }) => body.toString())).size).toBe(1)
    expect(requests.every(request => isStandardSigned(request, instance.secret))).toBe(true)
    const tolerance = TOLERANCE_MS + 2 * (loop.max / NANOSECONDS)
    for (const [index, delay] of delays.entries()) {
      const [before, next] = [requests[index]!, requests[index + 1]!]
      expect(next.receivedAt - before.receivedAt).toBeGreaterThanOrEqual(delay)
      expect(next.receivedAt - before.endedAt!).toBeLessThan(delay + tolerance)
    }
    expect(event?.deliveries[0]?.log).toHaveLength(6)
    expect(event?.deliveries[0]?.log[5]).toMatchObject({ status: 503, responseExcerpt: 'later' })
  })

  test('delivered and read events wait until the previous event is delivered or exhausted', async () => {
    await using harness = await openHarness({ retryDelaysMs: [60, 60] })
    await using receiver = await createReceiver()
    receiver.answerWith(request => ({
      kind: 'status',
      status: request.headers['x-service-event'] === 'message.sent' ? 500 : 200,
    }))
    const instance = await harness.addInstance(receiver.url)
    await instance.sendAndRead()
    await receiver.waitFor(5)
    const told = receiver.requests.map(({ headers }) => `${headers['x-service-event']} ${headers['x-service-attempt']}`)
    expect(told).toEqual([
      'message.sent 1',
      'message.sent 2',
      'message.sent 3',
      'message.delivered 1',
      'message.read 1',
    ])
    const ends = receiver.requests.map(({ endedAt }) => endedAt ?? Number.POSITIVE_INFINITY)
    expect(receiver.requests[3]!.receivedAt).toBeGreaterThan(ends[2]!)
    expect(receiver.requests[4]!.receivedAt).toBeGreaterThan(ends[3]!)
  })

  test('another message’s events do not wait for it', async () => {
    await using harness = await openHarness({ retryDelaysMs: [60_000] })
    await using receiver = await createReceiver()
    const instance = await harness.addInstance(receiver.url)
    let held: string | null = null
    receiver.answerWith(request => {
      held ??= eventOf(request).data.id
      return { kind: 'status', status: eventOf(request).data.id === held ? 500 : 200 }
    })
    await instance.sendAndRead()
    await receiver.waitFor(1)
    const second = await instance.sendAndRead()
    await receiver.waitFor(requests => requests.filter(request => eventOf(request).data.id === second).length === 3)
    expect(receiver.requests).toHaveLength(4)
  })

  test('a changed URL applies to later events only, across a restart too', async () => {
    await using harness = await openHarness({ retryDelaysMs: Array(100).fill(400) })
    await using before = await createReceiver()
    await using after = await createReceiver()
    before.answerWith({ kind: 'status', status: 500 })
    const instance = await harness.addInstance(before.url)
    await instance.sendAndRead()
    const early = await instance.receive('early')
    await before.waitFor(2)
    await harness.store.instances.setWebhookUrl(instance.id, after.url)
    const late = await instance.receive('late')
    await harness.restart()
    // Attempts that failed: two at least, more on a slow machine.
    const failed = before.requests.length
    before.answerWith({ kind: 'status', status: 200 })
    await before.waitFor(failed + 4)
    await after.waitFor(1)
    await instance.untilAll('delivered')
    expect(after.events.map(({ data }) => data.id)).toEqual([late])
    const told = before.requests.slice(failed).map(request => eventOf(request).event)
    expect(told.toSorted()).toEqual(['message.delivered', 'message.read', 'message.received', 'message.sent'])
    expect(before.events.some(({ data }) => data.id === early)).toBe(true)
  })

  test('events created while no URL is set are kept and not posted', async () => {
    await using harness = await openHarness()
    await using receiver = await createReceiver()
    const instance = await harness.addInstance(receiver.url)
    await harness.store.instances.setWebhookUrl(instance.id, null)
    await instance.receive('unheard')
    await harness.store.instances.setWebhookUrl(instance.id, receiver.url)
    const heard = await instance.receive('heard')
    await receiver.waitFor(1)
    expect(receiver.events.map(({ data }) => data.id)).toEqual([heard])
    const states = async () => (await instance.log()).map(({ delivery }) => delivery?.state)
    await until('the attempt to be recorded', async () => (await states())[1] === 'delivered')
    expect(await states()).toEqual([undefined, 'delivered'])
  })

  test('a new secret signs all later attempts, including queued deliveries', async () => {
    await using harness = await openHarness({ retryDelaysMs: [200, 200] })
    await using receiver = await createReceiver()
    receiver.answerWith(({ index }) => ({ kind: 'status', status: index === 0 ? 500 : 200 }))
    const instance = await harness.addInstance(receiver.url)
    await instance.receive()
    await receiver.waitFor(1)
    const rotated = newWebhookSecret()
    await harness.store.endpoints.replaceSecret(instance.id, DEFAULT_ENDPOINT, rotated, Date.now())
    await receiver.waitFor(2)
    const [first, second] = receiver.requests as [ReceivedRequest, ReceivedRequest]
    expect([isSigned(first, instance.secret), isSigned(first, rotated)]).toEqual([true, false])
    expect([isSigned(second, instance.secret), isSigned(second, rotated)]).toEqual([false, true])
    expect([isStandardSigned(second, instance.secret), isStandardSigned(second, rotated)]).toEqual([true, true])
    expect(idOf(second)).toBe(idOf(first))
  })

  test('a redelivery posts the same bytes and id to the current URL, and its attempts count from 1', async () => {
    await using harness = await openHarness({ retryDelaysMs: [20, 20] })
    await using before = await createReceiver()
    await using after = await createReceiver()
    before.answerWith({ kind: 'status', status: 410 })
    const instance = await harness.addInstance(before.url)
    await instance.receive()
    const [event] = await instance.untilAll('exhausted')
    await harness.store.instances.setWebhookUrl(instance.id, after.url)
    expect(await harness.store.deliveries.redeliver(instance.id, event!.id, Date.now())).toBe('queued')
    await after.waitFor(1)
    const [again] = await instance.untilAll('delivered')
    expect(idOf(after.requests[0]!)).toBe(idOf(before.requests[0]!))
    expect(after.requests[0]!.body.equals(before.requests[0]!.body)).toBe(true)
    expect(after.requests[0]!.headers['x-service-attempt']).toBe('1')
    expect(again?.deliveries.map(({ state, redelivery, log }) => [state, redelivery, log.length])).toEqual([
      ['exhausted', false, 3],
      ['delivered', true, 1],
    ])
  })

  test('slow, endless and broken responses are judged by their status line, and logged', async () => {
    await using harness = await openHarness({ retryDelaysMs: [], timeoutMs: 10_000 })
    await using receiver = await createReceiver()
    const instance = await harness.addInstance(receiver.url)
    const answers = [
      { kind: 'redirect', to: 'http://169.254.169.254/', status: 307 },
      { kind: 'drip', status: 200 },
      { kind: 'huge', status: 201, bytes: 50_000_000 },
      { kind: 'reset', after: 'status', status: 202 },
      { kind: 'reset', after: 'request' },
      { kind: 'hang' },
    ] as const
    receiver.answerWith(({ index }) => answers[index] ?? { kind: 'hang' })
    for (const [index] of answers.entries()) {
      await instance.receive()
      await receiver.waitFor(index + 1)
    }
    const log = await until('all to end', async () => {
      const events = await instance.log()
      return events.every(({ delivery }) => delivery?.state !== 'pending') && events
    })
    const told = log.map(({ delivery, deliveries }) => {
      const [attempt] = deliveries[0]!.log
      return [delivery?.state, attempt?.status ?? attempt?.error]
    })
    expect(told).toEqual([
      ['exhausted', 307],
      ['delivered', 200],
      ['delivered', 201],
      ['delivered', 202],
      ['exhausted', 'connection_reset'],
      ['exhausted', 'timeout'],
    ])
    expect(log[0]?.deliveries[0]?.log[0]?.responseExcerpt).toContain('Location: http://169.254.169.254/')
    expect(log[2]?.deliveries[0]?.log[0]?.responseExcerpt).toHaveLength(1_024)
    expect(receiver.requests).toHaveLength(answers.length)
  })

  test('a name that resolves to a refused address is a failed attempt, without a connection', async () => {
    await using receiver = await createReceiver()
    await using harness = await openHarness({
      retryDelaysMs: [],
      policy: { loopbackAndPrivateAllowed: false, allowedNetworks: [], ownPorts: [] },
      resolve: async () => [{ address: '127.0.0.1', family: 4 }],
    })
    const instance = await harness.addInstance(`http://instance.test:${receiver.port}/`)
    await instance.receive()
    const [event] = await instance.untilAll('exhausted')
    expect(event?.deliveries[0]?.log).toMatchObject([{ status: null, error: 'blocked_address' }])
    expect(receiver.requests).toHaveLength(0)
  })

  test('a crash between the answer and its record repeats the attempt under the same webhook-id', async () => {
    await using harness = await openHarness()
    await using receiver = await createReceiver()
    await harness.stopLanes()
    const neverRecords = (store: Store) => ({
      ...{ hints: store.hints, foreground: store.foreground, endpoints: store.endpoints },
      deliveries: {
        listFirst: store.deliveries.listFirst.bind(store.deliveries),
        listRetries: store.deliveries.listRetries.bind(store.deliveries),
        recordAttempt: () => new Promise<void>(() => {}),
      },
    })
    harness.startLanes({ wrap: neverRecords })
    const instance = await harness.addInstance(receiver.url)
    await instance.receive()
    await receiver.waitFor(1)
    await harness.dispatcher.close(0)
    harness.startLanes()
    await receiver.waitFor(2)
    const [first, second] = receiver.requests as [ReceivedRequest, ReceivedRequest]
    expect(idOf(second)).toBe(idOf(first))
    expect(second.headers['x-service-attempt']).toBe('1')
    const [event] = await instance.untilAll('delivered')
    expect(event?.deliveries[0]?.log).toHaveLength(1)
  })
})
