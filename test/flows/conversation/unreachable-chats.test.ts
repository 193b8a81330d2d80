import { afterAll, beforeAll, expect, test } from 'vitest'
import { incoming } from '../../contract/fixture.ts'
import { ApiHarness, type Created } from '../api/harness.ts'

/** Chats that nobody can write to are read and erased by the `chat` of their events. */

let api: ApiHarness
let instance: Created
beforeAll(async () => {
  api = await ApiHarness.start()
  instance = await api.createConnected()
})
afterAll(async () => api?.[Symbol.asyncDispose]())

test.each([
  ["WhatsApp's own account", incoming({ from: '0', chat: '0' })],
  ['an assistant', incoming({ written: true, from: '5511900000000', chat: '867051314767696@bot' })],
])('%s', async (_name, message) => {
  const { chat } = message
  await api.store.events.storeIncoming(await api.lease(instance.id), message, Date.now())
  const call = (method: string, path: string, body?: object) =>
    api.call({ method, path: `/v1${path}`, body, key: instance.token })
  const listed = (await call('GET', `/messages?chat=${chat}`)).body
  expect(listed.data).toMatchObject([{ chat }])
  expect(listed.data[0].phone ?? null).toBeNull()
  const { id } = listed.data[0]
  for (const [method, path, body] of [
    ['PUT', '/reaction', { emoji: '👍' }],
    ['DELETE', '/reaction'],
    ['PATCH', '', { text: 'new' }],
    ['DELETE', ''],
    ['POST', '/read'],
  ] as const) {
    const refused = await call(method, `/messages/${id}${path}`, body)
    expect([refused.status, refused.body.error?.code]).toEqual([409, 'chat_not_writable'])
  }
  const entries = await api.admin('GET', `/instances/${instance.id}/conversation?chat=${chat}`)
  expect(entries.body.data).toHaveLength(1)
  expect((await call('DELETE', `/chats/${chat}/media`)).body.data).toEqual({ erased: 0, inUse: 0 })
  const contact = `/instances/${instance.id}/contacts/${chat}`
  expect((await api.admin('GET', `${contact}/export`)).status).toBe(200)
  expect((await api.admin('DELETE', contact)).body.data).toMatchObject({ messages: 1 })
  expect((await call('GET', `/messages?chat=${chat}`)).body.data).toEqual([])
})

test('the event of such a chat has no phone', async () => {
  const { id } = instance
  for (const message of [incoming({ from: '0', chat: '0' }), incoming({ from: '5511988880000' })])
    await api.store.events.storeIncoming(await api.lease(id), message, Date.now())
  const { body } = await api.call({ path: '/v1/events?event=message.received', key: instance.token })
  const phones = body.data.slice(-2).map((event: { body: { data: object } }) => event.body.data)
  expect(phones).toMatchObject([
    { chat: '0', phone: null },
    { chat: '5511988880000', phone: '5511988880000' },
  ])
})

test.each(['ana', '055119876543210', '5511987654321@s.whatsapp.net', '5511987654321@lidd'])(
  '%s is refused',
  async chat => {
    const refused = await api.call({ path: `/v1/messages?chat=${chat}`, key: instance.token })
    expect(refused.body.error.code).toBe('invalid_request')
    const erasure = await api.admin('DELETE', `/instances/${instance.id}/contacts/${chat}`)
    expect(erasure.body.error.code).toBe('invalid_request')
  },
)
