import { createHmac } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { DueDelivery } from '../../../src/store/deliveries/deliveries.ts'
import { attempt } from '../../contract/fixture.ts'
import { ADMIN_KEY, ApiHarness, type Created } from '../api/harness.ts'
import { createPerson } from '../api/people/people.ts'

const URL = 'https://receiver.example/hook'
const HOUR_MS = 3_600_000
const FIVE = ['message.received', 'message.sent', 'message.delivered', 'message.read', 'message.failed']

let api: ApiHarness
let instance: Created
/** How far the wall clock was set forward since the start. */
let aheadMs = 0

beforeAll(async () => {
  api = await ApiHarness.start({ options: { now: () => Date.now() + aheadMs } })
})
afterAll(() => api[Symbol.asyncDispose]())
beforeEach(async () => {
  instance = await api.createConnected()
})

function call(method: string, path: string, body?: unknown, key = instance.token) {
  return api.call({ method, path, key, ...(body !== undefined && { body }) })
}

function ofEndpoints(method: string, path = '', body?: unknown) {
  return call(method, `/v1/webhooks/${instance.id}/endpoints${path}`, body)
}

async function create(settings: object = {}) {
  const { status, body } = await ofEndpoints('POST', '', { url: URL, ...settings })
  expect(status).toBe(201)
  return body.data
}

/** An event of the instance. @returns its deliveries by endpoint */
async function recordEvent(): Promise<Map<string, DueDelivery>> {
  const sent = await api.send(instance, { to: '5511987654321', text: 'hello' })
  await api.progress(instance, sent.body.data.id, 'sent')
  const ids = ['endpoint_default', ...(await api.store.endpoints.listPosting(instance.id))]
  const due = await Promise.all(ids.map(id => api.store.deliveries.listFirst(instance.id, 0, 10, id)))
  return new Map(due.flat().map(delivery => [delivery.endpointId, delivery]))
}

async function fail(delivery: DueDelivery, dueInMs = 60_000): Promise<void> {
  const now = Date.now()
  const then = { kind: 'retry', dueAt: now + dueInMs, failedAt: now } as const
  const lease = await api.lease(instance.id)
  await api.store.deliveries.recordAttempt(lease, delivery, attempt(delivery, { status: 500 }), then)
}

async function listDue(endpointId: string): Promise<DueDelivery[]> {
  const now = api.store.clock.steady()
  const retries = await api.store.deliveries.listRetries(instance.id, 10, endpointId)
  return retries.filter(({ dueAt }) => dueAt <= now)
}

async function exhaust(
  delivery: DueDelivery,
  answer: { status: number; responseExcerpt?: string } = { status: 500 },
): Promise<void> {
  const lease = await api.lease(instance.id)
  const record = attempt(delivery, answer)
  await api.store.deliveries.recordAttempt(lease, delivery, record, { kind: 'exhausted' })
}

describe('the endpoints of an instance', () => {
  test('are created with a secret of their own, listed, read, changed and deleted', async () => {
    const created = await create({ events: ['message.*', 'instance.*'], description: 'orders' })
    expect(created).toEqual({
      id: expect.stringMatching(/^endpoint_[0-9a-z]{12}$/),
      instanceId: instance.id,
      url: URL,
      events: ['message.*', 'instance.*'],
      active: true,
      description: 'orders',
      secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/),
      previousSecretUntil: null,
      createdAt: expect.any(String),
    })
    const other = await create()
    expect(other.events).toEqual(['*'])
    expect(other.secret).not.toBe(created.secret)
    expect((await ofEndpoints('GET')).body.data).toEqual([created, other])
    expect((await ofEndpoints('GET', `/${created.id}`)).body.data).toEqual(created)
    const changes = { active: false, description: null, events: ['message.failed'], url: `${URL}/2` }
    const changed = await ofEndpoints('PATCH', `/${created.id}`, changes)
    expect([changed.status, changed.body.data]).toEqual([200, { ...created, ...changes }])
    expect((await ofEndpoints('PATCH', `/${created.id}`, {})).body.data).toEqual(changed.body.data)
    expect((await ofEndpoints('DELETE', `/${created.id}`)).status).toBe(204)
    for (const method of ['GET', 'PATCH', 'DELETE']) {
      const gone = await ofEndpoints(method, `/${created.id}`, method === 'PATCH' ? {} : undefined)
      expect([gone.status, gone.body.error.code]).toEqual([404, 'endpoint_not_found'])
    }
    expect((await ofEndpoints('GET')).body.data).toEqual([other])
  })

  test('are at most ten, the default one included; setting its URL is never refused', async () => {
    await call('PUT', `/v1/webhooks/${instance.id}`, { url: URL })
    for (let count = 0; count < 9; count += 1) await create()
    const refused = await ofEndpoints('POST', '', { url: URL })
    expect([refused.status, refused.body.error.code]).toEqual([409, 'too_many_endpoints'])
    expect((await call('DELETE', `/v1/webhooks/${instance.id}`)).status).toBe(204)
    await create()
    expect((await call('PUT', `/v1/webhooks/${instance.id}`, { url: URL })).status).toBe(200)
  })

  test.each([
    ['no url', { events: ['*'] }, 'url'],
    ['a relative url', { url: '/hook' }, 'url'],
    ['no events', { url: URL, events: [] }, 'events'],
    ['an unknown kind', { url: URL, events: ['message.sent', 'message.opened'] }, 'events.1'],
    ['an unknown group', { url: URL, events: ['messages.*'] }, 'events.0'],
    ['a pattern in the middle', { url: URL, events: ['message.*.x'] }, 'events.0'],
    ['a text for active', { url: URL, active: 'yes' }, 'active'],
    ['a control character in the description', { url: URL, description: 'a\u0000b' }, 'description'],
  ])('are refused with %s', async (_what, body, field) => {
    const answer = await ofEndpoints('POST', '', body)
    expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_request'])
    expect(answer.body.error.message).toContain(`"${field}"`)
    expect((await ofEndpoints('GET')).body.data).toEqual([])
  })

  test('belong to the token: another instance finds none of them', async () => {
    const { id } = await create()
    const other = await api.createInstance()
    const path = `/v1/webhooks/${other.id}/endpoints/${id}`
    expect((await call('GET', path, undefined, other.token)).body.error.code).toBe('endpoint_not_found')
    expect((await call('GET', path)).body.error.code).toBe('instance_not_found')
  })

  test('a new secret is announced with the end of the old one', async () => {
    const { id, secret } = await create()
    const answer = await ofEndpoints('POST', `/${id}/secret`)
    expect(answer.status).toBe(200)
    expect(answer.body.data.secret).not.toBe(secret)
    const overlapMs = Date.parse(answer.body.data.previousSecretUntil) - Date.now()
    expect(overlapMs / 3_600_000).toBeCloseTo(24, 1)
  })

  test('a test event is posted immediately, signed with the secret of the endpoint, even while it is paused', async () => {
    const { id, secret } = await create({ active: false, events: ['instance.*'] })
    const { status, body } = await ofEndpoints('POST', `/${id}/test`)
    expect(status).toBe(200)
    expect(body.data).toMatchObject({ url: URL, status: 204, headers: { 'X-Service-Event': 'webhook.test' } })
    const signature = createHmac('sha256', secret).update(body.data.body).digest('hex')
    expect(body.data.headers['X-Service-Signature']).toBe(`sha256=${signature}`)
  })
})

describe('the default endpoint', () => {
  test('is the webhook of the contract, with its five kinds', async () => {
    expect((await ofEndpoints('GET', '/endpoint_default')).body.error.code).toBe('endpoint_not_found')
    const { data } = (await call('PUT', `/v1/webhooks/${instance.id}`, { url: URL })).body
    expect(data).toEqual({ instanceId: instance.id, url: URL, secret: expect.any(String), active: true })
    const endpoint = (await ofEndpoints('GET', '/endpoint_default')).body.data
    expect(endpoint).toMatchObject({
      id: 'endpoint_default',
      url: URL,
      secret: data.secret,
      events: FIVE,
      active: true,
    })
    expect((await ofEndpoints('GET')).body.data).toEqual([endpoint])
  })

  test('can be changed like any other; the contract shows a paused one as active, because it has a URL', async () => {
    await call('PUT', `/v1/webhooks/${instance.id}`, { url: URL })
    const path = '/endpoint_default'
    const changes = { url: `${URL}/2`, active: false, events: ['*'], description: 'all' }
    expect((await ofEndpoints('PATCH', path, changes)).body.data).toMatchObject(changes)
    const webhook = (await call('GET', `/v1/webhooks/${instance.id}`)).body.data
    expect(webhook).toEqual({ instanceId: instance.id, url: `${URL}/2`, secret: webhook.secret, active: true })
    await call('PUT', `/v1/webhooks/${instance.id}`, { url: URL })
    expect((await ofEndpoints('GET', path)).body.data).toMatchObject({ ...changes, url: URL })
  })

  test.each(['', '/endpoints/endpoint_default'])(
    'DELETE %s clears it; the next URL starts with the five kinds',
    async path => {
      await call('PUT', `/v1/webhooks/${instance.id}`, { url: URL })
      await ofEndpoints('PATCH', '/endpoint_default', { active: false, events: ['*'], description: 'all' })
      expect((await call('DELETE', `/v1/webhooks/${instance.id}${path}`)).status).toBe(204)
      expect((await call('GET', `/v1/webhooks/${instance.id}`)).body.data).toMatchObject({ url: null, active: false })
      expect((await ofEndpoints('GET')).body.data).toEqual([])
      await call('PUT', `/v1/webhooks/${instance.id}`, { url: URL })
      const endpoint = (await ofEndpoints('GET', '/endpoint_default')).body.data
      expect(endpoint).toMatchObject({ events: FIVE, active: true, description: null })
    },
  )

  test('PUT with null is refused by token', async () => {
    const answer = await call('PUT', `/v1/webhooks/${instance.id}`, { url: null })
    expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_request'])
  })
})

describe('by token', () => {
  test('an event shows its delivery to each endpoint, with the attempts', async () => {
    await call('PUT', `/v1/webhooks/${instance.id}`, { url: URL })
    const { id } = await create({ url: `${URL}/2` })
    const due = await recordEvent()
    await exhaust(due.get(id)!)
    const { eventId } = due.get(id)!
    const answer = await call('GET', `/v1/events/${eventId}`)
    expect(answer.body.data).toMatchObject({
      id: eventId,
      event: 'message.sent',
      delivery: { endpointId: id, state: 'exhausted' },
      deliveries: [
        { endpointId: 'endpoint_default', url: URL, state: 'pending', attempts: [] },
        {
          id: expect.stringMatching(/^dlv_/),
          endpointId: id,
          url: `${URL}/2`,
          state: 'exhausted',
          attempts: [{ attemptNumber: 1, requested: false, status: 500, headers: { 'webhook-id': eventId } }],
        },
      ],
    })
    const other = await api.createInstance()
    const foreign = await call('GET', `/v1/events/${eventId}`, undefined, other.token)
    expect([foreign.status, foreign.body.error.code]).toEqual([404, 'event_not_found'])
  })

  test.each([
    { status: 308, responseExcerpt: 'Location: https://receiver.example/hook/?token=confidential\n\n' },
    { status: 404, responseExcerpt: 'Cannot POST /hook?token=confidential' },
  ])('a caller that may not read endpoints sees neither a path of a URL nor a signature, after %j', async repeated => {
    const secretUrl = `${URL}?token=confidential`
    await call('PUT', `/v1/webhooks/${instance.id}`, { url: secretUrl })
    const delivery = (await recordEvent()).get('endpoint_default')!
    await exhaust(delivery, repeated)
    const { eventId } = delivery
    const { messageId } = (await call('GET', `/v1/events/${eventId}`)).body.data
    const createKey = async (...scopes: string[]): Promise<string> =>
      (await api.admin('POST', `/instances/${instance.id}/keys`, { name: 'CRM', scopes })).body.data.key
    const byKey = async (key: string) => call('GET', `/v1/events/${eventId}`, undefined, key)
    const ofInstance = `/admin/v1/instances/${instance.id}`
    const paths = [`/events/${eventId}`, '/events', `/messages/${messageId}`, '/webhook', '/endpoint-health'].map(
      path => `${ofInstance}${path}`,
    )
    const byPerson = async (role: 'operator' | 'viewer') => {
      const { headers } = await createPerson(api, role, [instance.id])
      return Promise.all(paths.map(path => api.call({ path, headers })))
    }

    const full = [await byKey(instance.token), await byKey(await createKey('events', 'webhooks'))]
    for (const { text } of [...full, ...(await byPerson('operator'))]) expect(text).toContain(secretUrl)
    for (const { text } of full) expect(text).toMatch(/signature/i)
    for (const { body } of full) expect(body.data.deliveries[0].attempts[0]).toMatchObject(repeated)
    for (const { status, text } of [await byKey(await createKey('events')), ...(await byPerson('viewer'))]) {
      expect(status).toBe(200)
      expect(text).toContain('https://receiver.example/…')
      expect(text).not.toMatch(/confidential|\/hook|signature/i)
    }
  })

  test('an event is redelivered to the named endpoint, or to those that receive its kind', async () => {
    await call('PUT', `/v1/webhooks/${instance.id}`, { url: URL })
    const { id } = await create()
    const due = await recordEvent()
    for (const delivery of due.values()) await exhaust(delivery)
    const { id: deaf } = await create({ events: ['message.failed'] })
    const { eventId } = due.get(id)!
    const path = `/v1/events/${eventId}/redeliver`
    expect((await call('POST', path, { endpointId: id })).status).toBe(202)
    const again = await call('POST', path, { endpointId: id })
    expect([again.status, again.body.error.code]).toEqual([409, 'delivery_pending'])
    expect((await call('POST', path)).status).toBe(202)
    expect((await call('POST', path, { endpointId: deaf })).status).toBe(202)
    expect((await call('POST', path, { endpointId: 'endpoint_0' })).body.error.code).toBe('endpoint_not_found')
    const { deliveries } = (await call('GET', `/v1/events/${eventId}`)).body.data
    const redelivered = deliveries.filter((delivery: { redelivery: boolean }) => delivery.redelivery)
    expect(redelivered.map(({ endpointId }: { endpointId: string }) => endpointId).sort()).toEqual(
      ['endpoint_default', id, deaf].sort(),
    )
  })

  test('a delivery can be retried immediately only while it waits for a retry, and once in 10 s', async () => {
    const { id } = await create()
    const delivery = (await recordEvent()).get(id)!
    const { deliveries } = (await call('GET', `/v1/events/${delivery.eventId}`)).body.data
    const path = `/v1/deliveries/${deliveries[0].id}/retry`
    const refusal = async () => {
      const { status, body, headers } = await call('POST', path)
      return [status, body.error?.code, Number(headers.get('retry-after') ?? 0) > 0]
    }
    expect(await refusal()).toEqual([409, 'delivery_not_waiting', false])
    await fail(delivery)
    expect(await call('POST', path)).toMatchObject({ status: 202, body: { data: { id: deliveries[0].id } } })
    expect(await refusal()).toEqual([429, 'retry_too_soon', true])
    const [due] = await listDue(id)
    await exhaust(due!)
    expect(await refusal()).toEqual([409, 'delivery_not_waiting', false])
    const other = await api.createInstance()
    for (const [key, absent] of [
      [other.token, path],
      [instance.token, '/v1/deliveries/dlv_x/retry'],
    ]) {
      const unknown = await call('POST', absent!, undefined, key)
      expect([unknown.status, unknown.body.error.code]).toEqual([404, 'delivery_not_found'])
    }
  })

  test('a requested retry is due immediately even if the wall clock was set forward since the start', async () => {
    const { id } = await create()
    const [one, other] = [(await recordEvent()).get(id)!, (await recordEvent()).get(id)!]
    for (const delivery of [one, other]) await fail(delivery, 2 * HOUR_MS)
    const { deliveries } = (await call('GET', `/v1/events/${one.eventId}`)).body.data
    aheadMs = HOUR_MS
    const calls = [
      await call('POST', `/v1/deliveries/${deliveries[0].id}/retry`),
      await ofEndpoints('POST', `/${id}/retry`),
    ]
    aheadMs = 0
    expect(calls.map(({ status }) => status)).toEqual([202, 202])
    expect((await listDue(id)).map(({ eventId }) => eventId)).toEqual([one.eventId, other.eventId])
  })

  test('retry all retries every waiting delivery of the endpoint, and none of another endpoint', async () => {
    const { id } = await create()
    const { id: other } = await create()
    const events = [await recordEvent(), await recordEvent(), await recordEvent()]
    for (const [index, due] of events.entries()) {
      await fail(due.get(id)!, 90_000 - index * 10_000)
      await fail(due.get(other)!)
    }
    expect(await ofEndpoints('POST', `/${id}/retry`)).toMatchObject({ status: 202, body: { data: { count: 3 } } })
    expect((await ofEndpoints('POST', `/${id}/retry`)).body.data.count).toBe(0)
    expect((await listDue(id)).map(({ eventId }) => eventId)).toEqual(events.map(due => due.get(id)!.eventId))
    expect(await listDue(other)).toEqual([])
    expect((await ofEndpoints('POST', '/endpoint_0/retry')).body.error.code).toBe('endpoint_not_found')
  })
})

test('the management API has the same calls for any instance', async () => {
  const admin = (method: string, path: string, body?: unknown) =>
    call(method, `/admin/v1/instances/${instance.id}${path}`, body, ADMIN_KEY)
  const created = await admin('POST', '/endpoints', { url: URL })
  expect(created.status).toBe(201)
  const { id } = created.body.data
  const delivery = (await recordEvent()).get(id)!
  await fail(delivery)
  expect((await admin('GET', '/endpoints')).body.data).toEqual([created.body.data])
  const { deliveries } = (await admin('GET', `/events/${delivery.eventId}`)).body.data
  expect((await admin('POST', `/deliveries/${deliveries[0].id}/retry`)).status).toBe(202)
  expect((await admin('POST', `/endpoints/${id}/retry`)).body.data).toEqual({ count: 0 })
  expect((await admin('POST', `/endpoints/${id}/secret`)).status).toBe(200)
  expect((await admin('PATCH', `/endpoints/${id}`, { active: false })).body.data.active).toBe(false)
  expect((await admin('DELETE', `/endpoints/${id}`)).status).toBe(204)
  const absent = await call('GET', '/admin/v1/instances/inst_000000000000/endpoints', undefined, ADMIN_KEY)
  expect([absent.status, absent.body.error.code]).toEqual([404, 'instance_not_found'])
})
