import { randomBytes } from 'node:crypto'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { createDatabase, type StoreKind } from '../../databases/database.ts'
import { ONE_STORE } from '../../databases/one-store.ts'
import { eventOf, Receiver } from '../../receiver.ts'
import { Service } from '../../service.ts'
import { until } from '../../until.ts'

const CONTACT = '5511987654321'
const HOUR_MS = 3_600_000

const newTraceparent = () => `00-${randomBytes(16).toString('hex')}-${randomBytes(8).toString('hex')}-01`

async function open(store: StoreKind) {
  const database = await createDatabase(store, inject('postgresUrl'))
  const service = await new Service({ env: { ...database.env, SANDBOX: 'on' } }).start()
  const receiver = await new Receiver().listen()
  onTestFinished(async () => {
    await service.dispose()
    await receiver.close()
    await database.dispose()
  })
  const { id, token } = await service.admin.createConnected()
  const instance = service.instance(id, token)
  await instance.setWebhook(receiver.url)

  /** A call with a token, or with the admin key if its path begins with /admin. */
  async function call(method: string, path: string, body: object, headers: Record<string, string>) {
    const key = path.startsWith('/admin') ? service.adminKey : token
    const response = await fetch(`${service.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })
    const answer = (await response.json()) as { data: { id: string } }
    return { status: response.status, id: answer.data?.id }
  }

  const send = (headers: Record<string, string>, more: object = {}) =>
    call('POST', '/v1/messages/text', { to: CONTACT, text: 'hello', ...more }, headers)

  /** The header of each webhook about a message, once it has been read. */
  async function postedAbout(messageId: string | undefined, last = 'message.read'): Promise<unknown[]> {
    const about = () => receiver.requests.filter(request => eventOf(request).data.id === messageId)
    await until(`${last} of ${messageId}`, () => about().some(request => eventOf(request).event === last))
    return about().map(request => request.headers['traceparent'])
  }
  return { service, receiver, instanceId: id, call, send, postedAbout }
}

describe.each(ONE_STORE)('%s', store => {
  test("the caller's trace context is sent with each webhook of its message, and with no other", async () => {
    const { send, postedAbout } = await open(store)
    const [mine, other] = [newTraceparent(), newTraceparent()]
    // Concurrently, so that some of them share a commit.
    const [first, second, plain] = await Promise.all([
      send({ traceparent: mine }),
      send({ traceparent: other, tracestate: 'vendor=1' }),
      send({}),
    ])
    expect(await postedAbout(first.id)).toEqual([mine, mine, mine])
    expect(await postedAbout(second.id)).toEqual([other, other, other])
    expect(await postedAbout(plain.id)).toEqual([undefined, undefined, undefined])
  })

  test('files, scheduled messages, commands and messages of the management API keep it as well', async () => {
    const { call, send, postedAbout, instanceId, receiver } = await open(store)
    const [byAdmin, later, command] = [newTraceparent(), newTraceparent(), newTraceparent()]
    const admin = await call(
      'POST',
      `/admin/v1/instances/${instanceId}/messages`,
      { to: CONTACT, text: 'by hand' },
      { traceparent: byAdmin },
    )
    expect(new Set(await postedAbout(admin.id))).toEqual(new Set([byAdmin]))
    const scheduled = await send({ traceparent: later }, { sendAt: new Date(Date.now() + 300).toISOString() })
    expect(new Set(await postedAbout(scheduled.id))).toEqual(new Set([later]))
    const cancelled = await send({ traceparent: later }, { sendAt: new Date(Date.now() + HOUR_MS).toISOString() })
    expect((await call('DELETE', `/v1/messages/${cancelled.id}`, {}, {})).status).toBe(202)
    expect(await postedAbout(cancelled.id, 'message.failed')).toEqual([later])
    const everything = await call('POST', `/v1/webhooks/${instanceId}/endpoints`, { url: `${receiver.url}/all` }, {})
    expect(everything.status).toBe(201)
    const reaction = await call('PUT', `/v1/messages/${admin.id}/reaction`, { emoji: '👍' }, { traceparent: command })
    expect(reaction.status).toBe(202)
    const done = () => receiver.requests.find(request => eventOf(request).event === 'command.done')
    await until('the command to be done', done)
    expect(done()?.headers['traceparent']).toBe(command)
  })

  test('after kill -9, the webhook is posted with the same trace context', async () => {
    const { service, receiver, send, postedAbout } = await open(store)
    receiver.answerWith({ kind: 'hang' })
    const mine = newTraceparent()
    const { id } = await send({ traceparent: mine })
    await until('a webhook to be in flight', () => receiver.requests.length === 1)
    await service.kill('SIGKILL')
    receiver.answerWith({ kind: 'status', status: 200 })
    receiver.release()
    await service.start()
    const posted = await postedAbout(id)
    expect(posted.length).toBeGreaterThanOrEqual(4)
    expect(new Set(posted)).toEqual(new Set([mine]))
  })

  test('a redelivery carries it again', async () => {
    const { service, receiver, instanceId, call, send, postedAbout } = await open(store)
    const mine = newTraceparent()
    const { id } = await send({ traceparent: mine })
    await postedAbout(id)
    const [event] = (await service.admin.listEvents(instanceId)).filter(({ event }) => event === 'message.sent')
    await call('POST', `/admin/v1/instances/${instanceId}/events/${event?.id}/redeliver`, {}, {})
    const again = () => receiver.requests.filter(({ headers }) => headers['webhook-id'] === event?.id)
    await until('the event to be posted twice', () => again().length === 2)
    expect(again().map(({ headers }) => headers['traceparent'])).toEqual([mine, mine])
  })
})

test.each([
  ['not one', 'abc'],
  ['an empty one', ''],
  ['the forbidden version', `ff-${'a'.repeat(32)}-${'b'.repeat(16)}-01`],
  ['only zeros', `00-${'0'.repeat(32)}-${'0'.repeat(16)}-00`],
  ['a very long one', `cc-${'a'.repeat(32)}-${'b'.repeat(16)}-01${'x'.repeat(8_000)}`],
  ['SQL', "00-' or 1=1; drop table messages; --"],
  ['bytes that are not ASCII', 'ÿþ\u00ff'],
])('a hostile header is ignored: %s', async (_, traceparent) => {
  const { send, postedAbout } = await open('sqlite')
  const { status, id } = await send({ traceparent })
  expect(status).toBe(202)
  expect(new Set(await postedAbout(id))).toEqual(new Set([undefined]))
})
