import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readSettings } from '../../../src/config.ts'
import { DEFAULT_ENDPOINT } from '../../../src/domain/events/endpoint.ts'
import type { AttemptRecord, DueDelivery } from '../../../src/store/deliveries/deliveries.ts'
import { incoming } from '../../contract/fixture.ts'
import { ApiHarness, type Created } from './harness.ts'

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const TO = '5511987654321'
const URL_A = 'https://example.com/a'

let api: ApiHarness
let instance: Created

beforeAll(async () => {
  api = await ApiHarness.start()
})
afterAll(() => api[Symbol.asyncDispose]())

async function accept(text: string, to = TO): Promise<string> {
  return (await api.send(instance, { to, text })).body.data.id
}

async function firstDue(): Promise<DueDelivery> {
  return (await api.store.deliveries.listFirst(instance.id, 0, 10))[0]!
}

/** Records one attempt of the instance's next delivery and its consequences. */
async function attempt(
  status: number | null,
  then: 'delivered' | 'exhausted',
  startedAt = Date.now(),
): Promise<DueDelivery> {
  const delivery = await firstDue()
  const record: AttemptRecord = {
    attemptNumber: delivery.attemptNumber,
    requested: false,
    url: delivery.url,
    startedAt,
    durationMs: 12,
    status,
    error: status === null ? 'timeout' : null,
    responseExcerpt: status === null ? null : 'the answer',
  }
  await api.store.deliveries.recordAttempt(await api.lease(instance.id), delivery, record, { kind: then })
  return delivery
}

describe('messages', () => {
  test('the log filters by state, recipient and time', async () => {
    instance = await api.createConnected()
    const first = await accept('one')
    const second = await accept('two', '5511987654322')
    await api.progress(instance, second, 'sent')
    const list = async (query: string) => {
      const { body } = await api.admin('GET', `/instances/${instance.id}/messages?${query}`)
      return body.data.map(({ id }: { id: string }) => id)
    }
    expect(await list('')).toEqual([second, first])
    expect(await list('state=queued')).toEqual([first])
    expect(await list('state=sent')).toEqual([second])
    expect(await list('state=failed')).toEqual([])
    expect(await list('status=sent')).toEqual([second])
    expect(await list('status=sent&state=sent')).toEqual([second])
    expect(await list('to=5511987654322')).toEqual([second])
    expect(await list('to=nobody')).toEqual([])
    expect(await list('since=2020-01-01T00:00:00Z&until=2100-01-01T00:00:00%2B02:00')).toEqual([second, first])
    expect(await list('since=2100-01-01T00:00:00Z')).toEqual([])
    expect(await list('until=2020-01-01T00:00:00.000Z')).toEqual([])
    expect(await list('limit=1')).toEqual([second])
  })

  test.each([
    'state=unknown',
    'state=',
    'state=sent&state=queued',
    'to=%00',
    'since=yesterday',
    'since=2026-01-01',
    'since=2026-13-01T00:00:00Z',
    'until=2026-02-30T00:00:00Z',
    'until=1700000000',
    'limit=x',
    'cursor=x',
  ])('?%s is an invalid request', async query => {
    const answer = await api.admin('GET', `/instances/${instance.id}/messages?${query}`)
    expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_request'])
  })

  test('one message shows its timeline: each change, its event, and the delivery of the event', async () => {
    instance = await api.createConnected()
    const id = await accept('before a URL is set')
    await api.progress(instance, id, 'sent')
    await api.admin('PUT', `/instances/${instance.id}/webhook`, { url: URL_A })
    await api.progress(instance, id, 'read')

    const { status, body } = await api.admin('GET', `/instances/${instance.id}/messages/${id}`)
    expect(status).toBe(200)
    expect(body.data).toMatchObject({ id, status: 'read', to: TO, text: 'before a URL is set', error: null })
    const [sent, delivered, read] = body.data.events
    expect(sent).toEqual({
      id: expect.stringMatching(/^evt_[0-9a-z]{26}$/),
      event: 'message.sent',
      timestamp: body.data.sentAt,
      delivery: null,
    })
    expect(delivered).toMatchObject({ event: 'message.delivered', timestamp: body.data.deliveredAt })
    expect(delivered.delivery).toEqual({
      id: expect.any(String),
      endpointId: 'endpoint_default',
      url: URL_A,
      state: 'pending',
      attemptCount: 0,
      nextAttemptAt: expect.stringMatching(ISO),
      redelivery: false,
    })
    expect(read).toMatchObject({ event: 'message.read', delivery: { state: 'blocked', nextAttemptAt: null } })
    expect(body.data.events).toHaveLength(3)
  })

  test('a message of another instance is not found', async () => {
    const id = await accept('mine')
    const other = await api.createInstance()
    for (const unknown of [id, 'msg_1', 'x', '%00']) {
      const answer = await api.admin('GET', `/instances/${other.id}/messages/${unknown}`)
      expect([answer.status, answer.body.error.code]).toEqual([404, 'message_not_found'])
    }
  })
})

describe('events', () => {
  test('an attempt shows no signature if it may have been made with a secret that was replaced', async () => {
    const created = await api.createConnected()
    instance = created
    await api.admin('PUT', `/instances/${created.id}/webhook`, { url: URL_A })
    const changedAt = Date.now() - 60_000
    await api.store.endpoints.replaceSecret(created.id, DEFAULT_ENDPOINT, 'whsec_AA==', changedAt)
    const isSigned = async (startedAt: number) => {
      await api.progress(created, await accept('x'), 'sent')
      const { eventId } = await attempt(200, 'delivered', startedAt)
      const { data } = (await api.admin('GET', `/instances/${created.id}/events/${eventId}`)).body
      const { headers } = data.deliveries[0].attempts[0]
      expect(headers['X-Service-Attempt']).toBe('1')
      return ['X-Service-Signature', 'webhook-signature'].map(name => name in headers)
    }
    expect(await isSigned(changedAt - 1)).toEqual([false, false])
    expect(await isSigned(changedAt + 1_000)).toEqual([false, false])
    expect(await isSigned(changedAt + 30_000)).toEqual([true, true])
  })

  test('one event shows the bytes posted, its deliveries and every attempt', async () => {
    instance = await api.createConnected()
    await api.admin('PUT', `/instances/${instance.id}/webhook`, { url: URL_A })
    const id = await accept('x')
    await api.progress(instance, id, 'sent')
    const { eventId } = await attempt(null, 'exhausted')

    const { status, body } = await api.admin('GET', `/instances/${instance.id}/events/${eventId}`)
    expect(status).toBe(200)
    expect(JSON.parse(body.data.body)).toEqual({
      event: 'message.sent',
      instanceId: instance.id,
      timestamp: body.data.timestamp,
      data: { id, to: TO, status: 'sent' },
    })
    const summary = {
      id: expect.any(String),
      endpointId: 'endpoint_default',
      url: URL_A,
      state: 'exhausted',
      attemptCount: 1,
      nextAttemptAt: null,
      redelivery: false,
    }
    expect(body.data).toEqual({
      id: eventId,
      event: 'message.sent',
      timestamp: expect.stringMatching(ISO),
      createdAt: expect.stringMatching(ISO),
      messageId: id,
      with: TO,
      delivery: summary,
      body: expect.any(String),
      deliveries: [
        {
          ...summary,
          attempts: [
            {
              attemptNumber: 1,
              requested: false,
              url: URL_A,
              startedAt: expect.stringMatching(ISO),
              durationMs: 12,
              status: null,
              error: 'timeout',
              responseExcerpt: null,
              headers: expect.objectContaining({
                'webhook-id': expect.any(String),
                'X-Service-Attempt': '1',
                'X-Service-Signature': expect.stringMatching(/^sha256=[0-9a-f]{64}$/),
              }),
            },
          ],
        },
      ],
    })
  })

  test('redelivering one creates a new delivery to the current URL', async () => {
    const { body } = await api.admin('GET', `/instances/${instance.id}/events?state=exhausted`)
    const [event] = body.data
    await api.admin('PUT', `/instances/${instance.id}/webhook`, { url: 'https://example.com/b' })
    const path = `/instances/${instance.id}/events/${event.id}/redeliver`
    const answer = await api.admin('POST', path)
    expect([answer.status, answer.body]).toEqual([202, { data: { eventId: event.id } }])
    const pending = await api.admin('POST', path)
    expect([pending.status, pending.body.error.code]).toEqual([409, 'delivery_pending'])
    await attempt(200, 'delivered')
    const detail = (await api.admin('GET', `/instances/${instance.id}/events/${event.id}`)).body.data
    expect(detail.deliveries).toMatchObject([
      { state: 'exhausted', url: URL_A },
      {
        state: 'delivered',
        url: 'https://example.com/b',
        redelivery: true,
        attempts: [{ status: 200, error: null, responseExcerpt: 'the answer' }],
      },
    ])
    expect(detail.delivery).toMatchObject({ state: 'delivered', redelivery: true })
  })

  test('redelivering many selects by state and time, and returns the count', async () => {
    const path = `/instances/${instance.id}/events/redeliver`
    const id = await accept('another')
    await api.progress(instance, id, 'sent')
    await attempt(500, 'exhausted')
    const none = await api.admin('POST', path, { since: '2100-01-01T00:00:00Z' })
    expect([none.status, none.body]).toEqual([202, { data: { count: 0 } }])
    expect((await api.admin('POST', path, { since: '2020-01-01T00:00:00Z' })).body).toEqual({ data: { count: 1 } })
    const delivered = { since: '2020-01-01T00:00:00Z', state: 'delivered' }
    expect((await api.admin('POST', path, delivered)).body).toEqual({ data: { count: 1 } })
  })

  test.each([
    {},
    { since: 'x' },
    { since: 1 },
    { since: '2020-01-01T00:00:00Z', state: 'pending' },
    { state: 'exhausted' },
  ])('redelivering %j is an invalid request', async body => {
    const answer = await api.admin('POST', `/instances/${instance.id}/events/redeliver`, body)
    expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_request'])
  })

  test('without a URL nothing is redelivered', async () => {
    instance = await api.createConnected()
    const id = await accept('x')
    await api.progress(instance, id, 'sent')
    const { body } = await api.admin('GET', `/instances/${instance.id}/events`)
    expect(body.data).toMatchObject([{ event: 'message.sent', delivery: null, messageId: id }])
    const one = await api.admin('POST', `/instances/${instance.id}/events/${body.data[0].id}/redeliver`)
    expect([one.status, one.body.error.code]).toEqual([409, 'webhook_not_configured'])
    const path = `/instances/${instance.id}/events/redeliver`
    const all = await api.admin('POST', path, { since: '2020-01-01T00:00:00Z' })
    expect([all.status, all.body.error.code]).toEqual([409, 'webhook_not_configured'])
  })

  test('the log filters by the state of the delivery and by kind', async () => {
    instance = await api.createConnected()
    await api.admin('PUT', `/instances/${instance.id}/webhook`, { url: URL_A })
    await api.progress(instance, await accept('x'), 'delivered')
    const list = async (query: string) => {
      const { body } = await api.admin('GET', `/instances/${instance.id}/events?${query}`)
      return body.data.map(({ event }: { event: string }) => event)
    }
    expect(await list('')).toEqual(['message.delivered', 'message.sent'])
    expect(await list('state=pending')).toEqual(['message.sent'])
    expect(await list('state=blocked')).toEqual(['message.delivered'])
    expect(await list('state=delivered')).toEqual([])
    expect(await list('kind=message.sent')).toEqual(['message.sent'])
    expect(await list('kind=message.received')).toEqual([])
    expect(await list('event=message.sent')).toEqual(['message.sent'])
    expect(await list('event=message.sent&kind=message.sent')).toEqual(['message.sent'])
  })

  test.each([
    'state=queued',
    'kind=other',
    'state=',
    'since=2026-01-01T00:00:00Z',
    'limit=0',
    'cursor=x',
    'event=message.sent&kind=message.read',
  ])('?%s is an invalid request', async query => {
    const answer = await api.admin('GET', `/instances/${instance.id}/events?${query}`)
    expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_request'])
  })

  test('an event of another instance is not found', async () => {
    const { body } = await api.admin('GET', `/instances/${instance.id}/events`)
    const other = await api.createInstance()
    for (const unknown of [body.data[0].id, 'evt_1', 'x', '%00']) {
      for (const [method, path] of [
        ['GET', ''],
        ['POST', '/redeliver'],
      ] as const) {
        const answer = await api.admin(method, `/instances/${other.id}/events/${unknown}${path}`)
        expect([answer.status, answer.body.error.code]).toEqual([404, 'event_not_found'])
      }
    }
  })

  test('an incoming message is in the log as its webhook reported it', async () => {
    instance = await api.createConnected()
    const message = {
      id: 'ABC',
      from: TO,
      type: 'text',
      text: 'Hi',
      name: 'Ana',
      chat: TO,
      lid: null,
      username: null,
      sentAt: Date.UTC(2026, 0, 1),
    } as const
    await api.store.events.storeIncoming(await api.lease(instance.id), message, Date.now())
    const { body } = await api.admin('GET', `/instances/${instance.id}/events`)
    expect(body.data).toMatchObject([
      {
        event: 'message.received',
        timestamp: '2026-01-01T00:00:00.000Z',
        messageId: expect.stringMatching(/^msg_/),
        with: TO,
        delivery: null,
      },
    ])
    const detail = (await api.admin('GET', `/instances/${instance.id}/events/${body.data[0].id}`)).body.data
    expect(detail.deliveries).toEqual([])
    const { messageId } = body.data[0]
    const sender = { chat: TO, phone: TO, lid: null, username: null }
    expect(JSON.parse(detail.body).data).toEqual({
      id: 'ABC',
      from: TO,
      type: 'text',
      text: 'Hi',
      name: 'Ana',
      messageId,
      ...sender,
    })
  })
})

test('a received message counts as unread for `RETENTION_DAYS`', async () => {
  instance = await api.createConnected()
  const lease = await api.lease(instance.id)
  const { retentionMs } = readSettings({})
  const then = Date.now() - retentionMs
  for (const at of [then - 60_000, then + 60_000]) await api.store.events.storeIncoming(lease, incoming(), at)
  const { body } = await api.admin('GET', `/instances/${instance.id}/chats`)
  expect(body.data).toMatchObject([{ unreadCount: 1 }])
})
