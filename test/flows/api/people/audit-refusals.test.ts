import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { deliveryIdOf } from '../../../../src/domain/ids.ts'
import { Refusal } from '../../../../src/domain/refusal.ts'
import { askOwner, OrderTaker } from '../../../../src/sandbox/remote-phones.ts'
import type { Store } from '../../../../src/store/store.ts'
import { ONE_STORE } from '../../../databases/one-store.ts'
import { MediaClient, png } from '../../media/harness.ts'
import { ADMIN_KEY, API_MEDIA, ApiHarness } from '../harness.ts'

const TO = '5511987654321'
const URL_OF_ENDPOINT = 'https://example.com/hook'

describe.each(ONE_STORE)('the audit on %s', on => {
  let api: ApiHarness
  let store: Store

  beforeAll(async () => {
    api = await ApiHarness.start({
      on,
      store: own => {
        store = own
        return {}
      },
      options: {
        sandbox: {
          enabled: true,
          // As if another node ran the phone.
          async writeAs(instanceId, message) {
            const { id } = await askOwner({ orders: store.phoneOrders, hints: store.hints }, instanceId, {
              kind: 'write',
              message,
            })
            return { id: id! }
          },
          isPhoneOn: async () => true,
          switchPhone: async () => undefined,
        },
      },
    })
  })
  afterAll(() => api[Symbol.asyncDispose]())

  /** What the audit has of an instance, or of none, the oldest first. */
  const actionsOf = async (id: string | null) => {
    const { body } = await api.admin('GET', '/audit?limit=200')
    const records = (body.data as { action: string; instanceId: string | null }[]).toReversed()
    return records.flatMap(({ action, instanceId }) => (instanceId === id ? [action] : []))
  }
  const answered = async (method: string, path: string, body?: unknown) => {
    const answer = await api.admin(method, path, body)
    return [answer.status, answer.body?.error?.code]
  }
  /** @returns the status of an upload by the administrator */
  const upload = async (id: string, body: Uint8Array | ReadableStream) => {
    const answer = await fetch(`${api.url}/admin/v1/instances/${id}/media`, {
      method: 'POST',
      headers: { authorization: `Bearer ${ADMIN_KEY}` },
      body,
      duplex: 'half',
    } as RequestInit)
    await answer.arrayBuffer()
    return answer.status
  }

  test('has no change to the same name, webhook or endpoint', async () => {
    const { id } = await api.createInstance()
    const [webhook, endpoints] = [`/instances/${id}/webhook`, `/instances/${id}/endpoints`]
    const created = await api.admin('POST', endpoints, { url: URL_OF_ENDPOINT })
    const operator = await api.admin('POST', '/endpoints', { url: URL_OF_ENDPOINT })
    const changes = [
      ['PUT', webhook, { url: URL_OF_ENDPOINT }],
      ['PATCH', `/instances/${id}`, { name: 'Renamed' }],
      ['PATCH', `${endpoints}/${created.body.data.id}`, { url: URL_OF_ENDPOINT, events: ['message.*'], active: false }],
      ['PATCH', `${endpoints}/endpoint_default`, { description: 'Mine' }],
      ['PATCH', `/endpoints/${operator.body.data.id}`, { url: URL_OF_ENDPOINT, description: 'Mine' }],
    ] as const
    const audited = async () => (await api.admin('GET', '/audit?limit=200')).body.data.length
    for (const [method, path, body] of changes) {
      const before = await audited()
      const first = await api.admin(method, path, body)
      expect([first.status, await audited()]).toEqual([200, before + 1])
      const again = await api.admin(method, path, body)
      expect([again.status, again.body, await audited()]).toEqual([200, first.body, before + 1])
    }
    const [unchanged] = (await api.admin('GET', endpoints)).body.data
    const { url, events, active, description } = unchanged
    const before = await audited()
    await api.admin('PATCH', `${endpoints}/endpoint_default`, { url, events, active, description })
    await api.admin('PUT', webhook, { url: null })
    await api.admin('PUT', webhook, { url: null })
    expect(await audited()).toBe(before + 1)
    await api.admin('DELETE', `/endpoints/${operator.body.data.id}`)
  })

  test('has no refused change of an endpoint', async () => {
    const { id } = await api.createInstance()
    const path = `/instances/${id}/endpoints`
    const settings = { url: URL_OF_ENDPOINT }
    for (let count = 0; count < 10; count += 1) expect(await answered('POST', path, settings)).toEqual([201, undefined])
    expect(await answered('POST', path, settings)).toEqual([409, 'too_many_endpoints'])
    expect(await answered('PATCH', `${path}/end_nowhere`, { active: false })).toEqual([404, 'endpoint_not_found'])
    expect(await actionsOf(id)).toEqual(['createInstance', ...Array(10).fill('createInstanceEndpoint')])
  })

  test('has no refused operator endpoint', async () => {
    const before = (await actionsOf(null)).length
    const create = () => answered('POST', '/endpoints', { url: URL_OF_ENDPOINT })
    let answer = await create()
    let created = 0
    for (; answer[0] === 201; answer = await create()) created += 1
    expect(answer).toEqual([409, 'too_many_operator_endpoints'])
    expect((await actionsOf(null)).slice(before)).toEqual(Array(created).fill('createOperatorEndpoint'))
  })

  test('has neither a refused retry nor a retry that retries nothing', async () => {
    const instance = await api.createConnected()
    const { id } = instance
    await api.admin('PUT', `/instances/${id}/webhook`, { url: URL_OF_ENDPOINT })
    const sent = await api.send(instance, { to: TO, text: 'x' })
    await api.progress(instance, sent.body.data.id, 'sent')
    const [delivery] = await store.deliveries.listFirst(id, 0, 10)
    const retry = (of: string) => answered('POST', `/instances/${id}/deliveries/${of}/retry`)
    const { eventId, seq } = delivery!
    expect(await retry(deliveryIdOf(eventId, String(seq)))).toEqual([409, 'delivery_not_waiting'])
    expect(await retry(deliveryIdOf(eventId, String(seq + 1_000)))).toEqual([404, 'delivery_not_found'])
    const [endpoint] = (await api.admin('GET', `/instances/${id}/endpoints`)).body.data
    const all = await api.admin('POST', `/instances/${id}/endpoints/${endpoint.id}/retry`)
    expect([all.status, all.body.data]).toEqual([202, { count: 0 }])
    expect(await actionsOf(id)).toEqual(['createInstance', 'setInstanceWebhook'])
  })

  test('has no upload that was refused, and no erasure of a file that is in use', async () => {
    const instance = await api.createConnected()
    const { id } = instance
    const client = new MediaClient(api.url, instance)
    expect(await upload(id, png(API_MEDIA.quotaBytes + 1))).toBe(413)
    // Without a Content-Length, so that the file is refused when it arrives.
    expect(await upload(id, new Blob([png(API_MEDIA.quotaBytes + 1)]).stream())).toBe(413)
    expect(await actionsOf(id)).toEqual(['createInstance'])

    expect(await upload(id, png(1_000))).toBe(201)
    const { id: media } = (await client.upload(png(1_000))).body.data
    const message = { to: TO, media, as: 'document' }
    const sent = await api.call({ method: 'POST', path: '/v1/messages/media', key: instance.token, body: message })
    expect(sent.status).toBe(202)
    expect(await answered('DELETE', `/instances/${id}/media/${media}`)).toEqual([409, 'media_in_use'])
    expect(await actionsOf(id)).toEqual(['createInstance', 'uploadInstanceMedia'])
  })

  test('has an order to a phone on another node only if that node executed it', async () => {
    const { id } = await api.createConnected('sandbox')
    const taker = new OrderTaker({
      lease: await api.lease(id),
      orders: store.phoneOrders,
      hints: store.hints,
      async execute(order) {
        if (order.kind !== 'write' || order.message.text === 'refused') throw new Refusal('instance_not_connected')
        return { on: true, id: '3EB0' }
      },
      onError: error => {
        throw error
      },
    })
    try {
      const write = (text: string) => answered('POST', `/instances/${id}/sandbox/incoming`, { from: TO, text })
      expect(await write('refused')).toEqual([422, 'instance_not_connected'])
      expect(await actionsOf(id)).toEqual(['createInstance'])
      expect(await write('executed')).toEqual([202, undefined])
      expect(await actionsOf(id)).toEqual(['createInstance', 'writeAsContact'])
    } finally {
      await taker.end()
    }
  })
})
