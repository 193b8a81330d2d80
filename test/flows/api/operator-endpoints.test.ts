import { dirname, join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import Sqlite from 'better-sqlite3'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { OperatorEndpointView } from '../../../src/api/resources/events/operator-endpoint.ts'
import type { DueDelivery } from '../../../src/store/deliveries/deliveries.ts'
import { attempt } from '../../contract/fixture.ts'
import { until } from '../../until.ts'
import { ADMIN_KEY, ApiHarness, type Created } from './harness.ts'
import { createPerson } from './people/people.ts'

const URL = 'https://operator.example/hook?key=hidden'

let api: ApiHarness

beforeAll(async () => {
  api = await ApiHarness.start()
})
afterAll(() => api[Symbol.asyncDispose]())
afterEach(async () => {
  for (const { id } of await api.store.operatorEndpoints.list()) await api.store.operatorEndpoints.delete(id, 1)
})

function call(method: string, path: string, body?: unknown, key = ADMIN_KEY) {
  return api.call({ method, path, key, ...(body !== undefined && { body }) })
}

const ofEndpoints = (method: string, path = '', body?: unknown) => call(method, `/admin/v1/endpoints${path}`, body)

async function create(settings: object = {}) {
  const { status, body } = await ofEndpoints('POST', '', { url: URL, ...settings })
  expect(status).toBe(201)
  return body.data
}

/** Stops the instance, which records an event with a delivery to the endpoint. */
async function stopNumber(instance: Created, endpointId: string): Promise<DueDelivery> {
  await api.record(instance.id, { state: 'stopped', reason: 'Stopped.' })
  const [delivery] = await api.store.deliveries.listFirst(instance.id, 0, 1, endpointId)
  return delivery!
}

/** @returns the ID of a text that was sent, which is an event about a message */
async function sendText(instance: Created): Promise<string> {
  const sent = await api.send(instance, { to: '5511987654321', text: 'confidential' })
  await api.progress(instance, sent.body.data.id, 'sent')
  return sent.body.data.id
}

async function fail(instance: Created, delivery: DueDelivery, kind: 'retry' | 'exhausted'): Promise<void> {
  const now = api.store.clock.steady()
  const then = kind === 'retry' ? { kind, dueAt: now + 60_000, failedAt: now } : { kind }
  const lease = await api.lease(instance.id)
  await api.store.deliveries.recordAttempt(
    lease,
    delivery,
    attempt(delivery, { status: 500, responseExcerpt: `Cannot POST ${URL}`, startedAt: Date.now() }),
    then,
  )
}

describe('operator endpoints', () => {
  test('are created with a secret of their own, listed, read, changed and deleted', async () => {
    const created = await create({ description: 'on call' })
    expect(created).toEqual({
      id: expect.stringMatching(/^operator_[0-9a-z]{12}$/),
      url: URL,
      events: ['instance.*'],
      active: true,
      description: 'on call',
      secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/),
      previousSecretUntil: null,
      createdAt: expect.any(String),
      deliveries: { waiting: 0, retrying: 0, givenUp: 0 },
    })
    const other = await create({ events: ['instance.stopped', 'instance.logged_out'] })
    expect(other.secret).not.toBe(created.secret)
    expect((await ofEndpoints('GET')).body.data).toEqual([created, other])
    const changes = { active: false, description: null, events: ['instance.stopped'], url: `${URL}2` }
    expect((await ofEndpoints('PATCH', `/${created.id}`, changes)).body.data).toEqual({ ...created, ...changes })
    expect((await ofEndpoints('GET', `/${created.id}`)).body.data).toEqual({ ...created, ...changes })
    const replaced = (await ofEndpoints('POST', `/${created.id}/secret`)).body.data
    expect(replaced.secret).not.toBe(created.secret)
    expect((Date.parse(replaced.previousSecretUntil) - Date.now()) / 3_600_000).toBeCloseTo(24, 1)
    expect((await ofEndpoints('DELETE', `/${created.id}`)).status).toBe(204)
    const calls = [
      ['GET', ''],
      ['PATCH', ''],
      ['DELETE', ''],
      ['POST', '/secret'],
      ['POST', '/test'],
      ['POST', '/retry'],
    ] as const
    for (const [method, path] of calls) {
      const gone = await ofEndpoints(method, `/${created.id}${path}`, method === 'PATCH' ? {} : undefined)
      expect([gone.status, gone.body.error.code]).toEqual([404, 'endpoint_not_found'])
    }
    expect((await ofEndpoints('GET')).body.data).toEqual([other])
  })

  test.each([
    ['no url', { events: ['instance.*'] }, 'url'],
    ['a url that is not absolute', { url: '/hook' }, 'url'],
    ['events of messages', { url: URL, events: ['message.*'] }, 'events'],
    ['all events', { url: URL, events: ['*'] }, 'events'],
    ['no events', { url: URL, events: [] }, 'events'],
    ['a control character in the description', { url: URL, description: 'a\u0000b' }, 'description'],
  ])('are refused with %s', async (_what, body, field) => {
    const answer = await ofEndpoints('POST', '', body)
    expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_request'])
    expect(answer.body.error.message).toContain(field)
    expect((await ofEndpoints('GET')).body.data).toEqual([])
  })

  test('are limited to ten, and do not count towards the limit of an instance', async () => {
    for (let count = 0; count < 10; count += 1) await create()
    const refused = await ofEndpoints('POST', '', { url: URL })
    expect([refused.status, refused.body.error.code]).toEqual([409, 'too_many_operator_endpoints'])
    const instance = await api.createInstance()
    const own = `/v1/webhooks/${instance.id}/endpoints`
    for (let count = 0; count < 10; count += 1)
      expect((await call('POST', own, { url: URL }, instance.token)).status).toBe(201)
  })

  test('and their deliveries are hidden from tokens and API keys in every call', async () => {
    const instance = await api.createConnected()
    const { token } = instance
    const { id } = await create()
    const delivery = await stopNumber(instance, id)
    await fail(instance, delivery, 'retry')
    const own = `/v1/webhooks/${instance.id}/endpoints`
    expect((await call('GET', own, undefined, token)).body.data).toEqual([])
    const calls = [
      ['GET', ''],
      ['PATCH', ''],
      ['DELETE', ''],
      ['POST', '/secret'],
      ['POST', '/test'],
      ['POST', '/retry'],
    ] as const
    for (const [method, path] of calls) {
      const hidden = await call(method, `${own}/${id}${path}`, method === 'PATCH' ? {} : undefined, token)
      expect([method, path, hidden.body.error?.code]).toEqual([method, path, 'endpoint_not_found'])
    }
    const event = `/events/${delivery.eventId}`
    const admin = `/admin/v1/instances/${instance.id}`
    const [seen] = (await call('GET', `${admin}${event}`)).body.data.deliveries
    expect(seen).toMatchObject({ endpointId: id, url: URL, attempts: [{ status: 500 }] })
    const retry = `/deliveries/${seen.id}/retry`
    expect((await call('POST', `/v1${retry}`, undefined, token)).body.error.code).toBe('delivery_not_found')
    expect((await call('POST', `${admin}${retry}`)).status).toBe(202)
    const shown = (await call('GET', `/v1${event}`, undefined, token)).body.data
    expect([shown.delivery, shown.deliveries]).toEqual([null, []])
    const feed = await call('GET', '/v1/events?event=instance.stopped', undefined, token)
    expect(feed.body.data.map((item: { id: string }) => item.id)).toEqual([delivery.eventId])
    expect(JSON.stringify([shown, feed.body])).not.toContain(id)
    const [due] = await api.store.deliveries.listRetries(instance.id, 1, id)
    await fail(instance, due!, 'exhausted')
    const again = await call('POST', `/v1${event}/redeliver`, { endpointId: id }, token)
    expect(again.body.error.code).toBe('endpoint_not_found')
    expect((await call('POST', `/v1${event}/redeliver`, {}, token)).body.error.code).toBe('webhook_not_configured')
    expect((await call('POST', `${admin}${event}/redeliver`, { endpointId: id })).status).toBe(202)
  })

  test('show their URL and signatures to owners only', async () => {
    const instance = await api.createConnected()
    const { id } = await create()
    await fail(instance, await stopNumber(instance, id), 'retry')
    const path = `/admin/v1/instances/${instance.id}/events`
    for (const role of ['owner', 'operator', 'viewer'] as const) {
      const { headers } = await createPerson(api, role, [instance.id])
      const [listed] = (await api.call({ path: `${path}?kind=instance.stopped`, headers })).body.data
      const { deliveries } = (await api.call({ path: `${path}/${listed.id}`, headers })).body.data
      const url = role === 'owner' ? URL : 'https://operator.example/…'
      expect([listed.delivery.url, deliveries[0].url, deliveries[0].attempts[0].url]).toContain(url)
      expect(JSON.stringify([listed, deliveries]).includes('hidden')).toBe(role === 'owner')
      expect('webhook-signature' in deliveries[0].attempts[0].headers).toBe(role === 'owner')
    }
  })

  test('get no event about a message, even if somebody names them in a redelivery', async () => {
    const instance = await api.createConnected()
    const { id } = await create()
    const messageId = await sendText(instance)
    const { headers } = await createPerson(api, 'operator', [instance.id])
    const ofInstance = `/admin/v1/instances/${instance.id}`
    const [sent] = (await api.call({ path: `${ofInstance}/messages/${messageId}`, headers })).body.data.events
    const path = `${ofInstance}/events/${sent.id}/redeliver`
    for (const credentials of [{ headers }, { key: ADMIN_KEY }]) {
      const { status, body } = await api.call({ method: 'POST', path, body: { endpointId: id }, ...credentials })
      expect([status, body.error?.code]).toEqual([404, 'endpoint_not_found'])
    }
    expect(await api.store.deliveries.listFirst(instance.id, 0, 1, id)).toEqual([])
  })

  test("show their URL to owners only, also in a message's timeline, where an earlier version could put them", async () => {
    const instance = await api.createConnected()
    await call('PUT', `/v1/webhooks/${instance.id}`, { url: URL }, instance.token)
    const { id } = await create()
    const messageId = await sendText(instance)
    const database = new Sqlite(join(dirname(api.mediaDir), 'pombal.db'))
    database.prepare('UPDATE deliveries SET endpoint_id = ? WHERE instance_id = ?').run(id, instance.id)
    database.close()
    for (const role of ['owner', 'operator', 'viewer'] as const) {
      const { headers } = await createPerson(api, role, [instance.id])
      const answer = await api.call({ path: `/admin/v1/instances/${instance.id}/messages/${messageId}`, headers })
      const [{ delivery }] = answer.body.data.events
      const url = role === 'owner' ? URL : 'https://operator.example/…'
      expect([role, delivery]).toEqual([role, expect.objectContaining({ endpointId: id, url })])
    }
  })

  test('are tested without an instance, with both secrets while the old one is valid', async () => {
    const { id } = await create({ active: false })
    const signatures = async () => {
      const { status, body } = await ofEndpoints('POST', `/${id}/test`)
      expect([status, body.data.url, body.data.status]).toEqual([200, URL, 204])
      expect(JSON.parse(body.data.body)).toMatchObject({ event: 'webhook.test', instanceId: null, data: {} })
      return body.data.headers['webhook-signature'].split(' ').length
    }
    expect(await signatures()).toBe(1)
    await ofEndpoints('POST', `/${id}/secret`)
    expect(await signatures()).toBe(2)
  })

  test('retry everything that waits, in all instances', async () => {
    const { id } = await create()
    for (const instance of [await api.createConnected(), await api.createConnected()])
      await fail(instance, await stopNumber(instance, id), 'retry')
    expect((await ofEndpoints('GET', `/${id}`)).body.data.deliveries).toEqual({ waiting: 2, retrying: 2, givenUp: 0 })
    const { status, body } = await ofEndpoints('POST', `/${id}/retry`)
    expect([status, body.data]).toEqual([202, { count: 2 }])
    expect((await ofEndpoints('POST', `/${id}/retry`)).body.data).toEqual({ count: 0 })
  })

  test('need attention while they refuse events or have missed some, which only owners see', async () => {
    const { id } = await create()
    const instance = await api.createConnected()
    const failing = async (headers?: Record<string, string>) => {
      const { data } = (
        await api.call({ path: '/admin/v1/attention', ...(headers ? { headers } : { key: ADMIN_KEY }) })
      ).body
      return data.operatorEndpoints.map(({ id, deliveries }: OperatorEndpointView) => ({ id, ...deliveries }))
    }
    expect(await failing()).toEqual([])
    const delivery = await stopNumber(instance, id)
    await fail(instance, delivery, 'retry')
    const retrying = [{ id, waiting: 1, retrying: 1, givenUp: 0 }]
    await until('the endpoint to be listed', async () => isDeepStrictEqual(await failing(), retrying))
    for (const role of ['operator', 'viewer'] as const)
      expect(await failing((await createPerson(api, role, null)).headers)).toEqual([])
    await ofEndpoints('PATCH', `/${id}`, { active: false })
    await until('the paused endpoint to be left out', async () => (await failing()).length === 0)
    const { deliveries } = api.store
    const [retry] = await deliveries.listRetries(instance.id, 1, id)
    await fail(instance, retry!, 'exhausted')
    const missed = [{ id, waiting: 0, retrying: 0, givenUp: 1 }]
    await until('the missed event to be listed', async () => isDeepStrictEqual(await failing(), missed))
    await ofEndpoints('DELETE', `/${id}`)
    await until('the deleted endpoint to be left out', async () => (await failing()).length === 0)
  })

  test('are recorded in the audit with the actor and the endpoint, without the secret', async () => {
    const { id, secret } = await create()
    await ofEndpoints('PATCH', `/${id}`, { active: false })
    await ofEndpoints('POST', `/${id}/secret`)
    await ofEndpoints('DELETE', `/${id}`)
    const { data } = (await call('GET', '/admin/v1/audit?limit=4')).body
    expect(data.map(({ action }: { action: string }) => action)).toEqual([
      'deleteOperatorEndpoint',
      'replaceOperatorEndpointSecret',
      'changeOperatorEndpoint',
      'createOperatorEndpoint',
    ])
    for (const entry of data) expect(JSON.stringify(entry)).toContain(id)
    expect(JSON.stringify(data)).not.toContain(secret)
  })
})
