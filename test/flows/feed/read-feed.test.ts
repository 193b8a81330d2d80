import { expect, test } from 'vitest'
import { formatCursor, parseCursor } from '../../../src/domain/events/feed-place.ts'
import { incoming } from '../../contract/fixture.ts'
import { ONE_STORE } from '../../databases/one-store.ts'
import { until } from '../../until.ts'
import { ApiHarness, type Created } from '../api/harness.ts'
import { type FeedItem, FeedStream } from './feed-stream.ts'

/** `GET /v1/events` (contract §4, "The feed"). */

const WAIT_MS = 25_000

async function receive(api: ApiHarness, { id }: Created, count: number, text = 'Hi'): Promise<void> {
  const lease = await api.lease(id)
  for (let left = count; left > 0; left -= 1)
    await api.store.events.storeIncoming(lease, incoming({ text }), Date.now())
}

function read(api: ApiHarness, { token }: Created, query = '') {
  return api.call({ path: `/v1/events${query}`, key: token })
}

const eventsOf = (items: FeedItem[]) => items.map(({ body }) => body.event)

test.each(ONE_STORE)('on %s, pages continue where the last one ended, each event once, in order', async on => {
  await using api = await ApiHarness.start({ on })
  const instance = await api.createConnected()
  const { body: sent } = await api.send(instance, { to: '5511987654321', text: 'Hi' })
  await api.progress(instance, sent.data.id, 'read')
  await receive(api, instance, 5)
  const items: FeedItem[] = []
  let cursor = ''
  for (let rounds = 0; rounds < 5; rounds += 1) {
    const { status, body } = await read(api, instance, `?limit=3${cursor && `&after=${cursor}`}`)
    expect(status).toBe(200)
    items.push(...body.data)
    cursor = body.nextCursor
  }
  const own = items.filter(({ body }) => body.event.startsWith('message.'))
  expect(eventsOf(own)).toEqual([
    'message.sent',
    'message.delivered',
    'message.read',
    ...Array(5).fill('message.received'),
  ])
  expect(new Set(items.map(({ id }) => id)).size).toBe(items.length)
  const logged = await api.admin('GET', `/instances/${instance.id}/events?limit=50`)
  expect(items.map(({ id }) => id).toSorted()).toEqual(
    logged.body.data.map((event: { id: string }) => event.id).toSorted(),
  )
  await receive(api, instance, 1)
  const { body } = await read(api, instance, `?after=${cursor}`)
  expect(body.data).toHaveLength(1)
  expect(body.nextCursor).toBe(body.data[0].cursor)
})

test('an item holds the event as a webhook gets it, byte for byte', async () => {
  await using api = await ApiHarness.start()
  const instance = await api.createConnected()
  await receive(api, instance, 1, 'Olá "quoted" \u2028 \u0000 😀')
  const { text, body } = await read(api, instance, '?event=message.received')
  const [{ id }] = body.data
  const event = await api.admin('GET', `/instances/${instance.id}/events/${id}`)
  expect(text).toContain(`"body":${event.body.data.body}}`)
})

test.each(ONE_STORE)('on %s, a poll that waits is answered as soon as there is an event', async on => {
  await using api = await ApiHarness.start({ on })
  const instance = await api.createConnected()
  const { body: start } = await read(api, instance, '?after=latest')
  expect(start.data).toEqual([])
  const startedAt = performance.now()
  const polled = read(api, instance, `?after=${start.nextCursor}&wait=25`)
  await receive(api, instance, 1)
  expect((await polled).body.data).toHaveLength(1)
  expect(performance.now() - startedAt).toBeLessThan(WAIT_MS / 2)
})

test('a poll finds an event even if no hint arrives', async () => {
  const deaf = { shared: false, on: () => () => undefined }
  await using api = await ApiHarness.start({ store: () => ({ hints: deaf }) })
  const instance = await api.createConnected()
  const { body: start } = await read(api, instance, '?after=latest')
  const polled = read(api, instance, `?after=${start.nextCursor}&wait=25`)
  await receive(api, instance, 1)
  expect((await polled).body.data).toHaveLength(1)
})

test('a poll without a new event ends when its waiting time is over, and keeps its cursor', async () => {
  await using api = await ApiHarness.start()
  const instance = await api.createConnected()
  await receive(api, instance, 2)
  const { body: all } = await read(api, instance)
  const startedAt = performance.now()
  const { status, body } = await read(api, instance, `?after=${all.nextCursor}&wait=1`)
  expect(performance.now() - startedAt).toBeGreaterThan(900)
  expect([status, body]).toEqual([200, { data: [], nextCursor: all.nextCursor }])
})

test('events of one kind are found among thousands of others', async () => {
  await using api = await ApiHarness.start()
  const instance = await api.createConnected()
  const lease = await api.lease(instance.id)
  await Promise.all(Array.from({ length: 2_500 }, () => api.store.events.storeIncoming(lease, incoming(), 1)))
  const { body: sent } = await api.send(instance, { to: '5511987654321', text: 'Hi' })
  await api.progress(instance, sent.data.id, 'delivered')
  const { body } = await read(api, instance, '?event=message.delivered&limit=1')
  expect(eventsOf(body.data)).toEqual(['message.delivered'])
  const { body: none } = await read(api, instance, `?event=message.failed`)
  expect(none.data).toEqual([])
  expect(none.nextCursor).toBe(formatCursor(await api.store.events.findFeedEnd(instance.id)))
})

test('an answer has at most 1 MiB', async () => {
  await using api = await ApiHarness.start()
  const instance = await api.createConnected()
  await receive(api, instance, 30, 'ã'.repeat(60_000))
  let count = 0
  for (let cursor = '0'; ; ) {
    const { text, body } = await read(api, instance, `?event=message.received&limit=1000&after=${cursor}`)
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(1_048_576)
    count += body.data.length
    cursor = body.nextCursor
    if (body.data.length === 0) break
  }
  expect(count).toBe(30)
})

test('a cursor below erased events gets 410, and a reader without a cursor begins after them', async () => {
  await using api = await ApiHarness.start()
  const instance = await api.createConnected()
  await receive(api, instance, 3)
  const { body: before } = await read(api, instance, '?limit=1')
  const later = Date.now() + 60_000
  while ((await api.store.retention.step(later, later)) > 0);
  await receive(api, instance, 1)
  const answer = await read(api, instance, `?after=${before.nextCursor}`)
  expect([answer.status, answer.body.error.code]).toEqual([410, 'cursor_expired'])
  const { body } = await read(api, instance)
  expect(body.data).toHaveLength(1)
  const future = await read(api, instance, `?after=${parseCursor(body.nextCursor)!.seq + 1}`)
  expect([future.status, future.body.error.code]).toEqual([410, 'cursor_expired'])
})

test.each(ONE_STORE)('on %s, a cursor of another instance gets 410, on a page and on a stream', async on => {
  await using api = await ApiHarness.start({ on })
  const [instance, other] = [await api.createConnected(), await api.createConnected()]
  const { body: nothing } = await read(api, instance, '?after=latest')
  for (const each of [instance, other]) await receive(api, each, 3)
  const { body: all } = await read(api, instance)
  for (const cursor of [nothing.nextCursor, ...all.data.map((event: FeedItem) => event.cursor), all.nextCursor]) {
    expect((await read(api, instance, `?after=${cursor}`)).status).toBe(200)
    const answer = await read(api, other, `?after=${cursor}`)
    expect([answer.status, answer.body.error.code]).toEqual([410, 'cursor_expired'])
    const { response } = await FeedStream.open(api.url, other.token, { lastEventId: cursor })
    expect(response.status).toBe(410)
  }
})

test('a cursor of an earlier version, a number, continues, and the answer has one of this version', async () => {
  await using api = await ApiHarness.start()
  const instance = await api.createConnected()
  await receive(api, instance, 3)
  const { body: all } = await read(api, instance)
  const { seq } = parseCursor(all.data.at(-2).cursor)!
  const { body } = await read(api, instance, `?after=${seq}`)
  expect(body).toEqual({ data: [all.data.at(-1)], nextCursor: all.nextCursor })
  const { body: none } = await read(api, instance, `?after=${seq + 1}`)
  expect(none).toEqual({ data: [], nextCursor: all.nextCursor })
})

test.each([
  'after=',
  'after=-1',
  'after=evt_1',
  'after=1e3',
  'after=1.',
  'after=1.EVENT',
  'limit=0',
  'limit=1001',
  'wait=26',
  'event=message',
  'afer=1',
])('a poll with ?%s is refused', async query => {
  await using api = await ApiHarness.start()
  const instance = await api.createInstance()
  const { status, body } = await read(api, instance, `?${query}`)
  expect([status, body.error.code]).toEqual([400, 'invalid_request'])
})

test('a sixth poll is refused, and a place is free when one ends', async () => {
  await using api = await ApiHarness.start()
  const [instance, other] = [await api.createConnected(), await api.createConnected()]
  const { body: start } = await read(api, instance, '?after=latest')
  const polls = Array.from({ length: 5 }, () => read(api, instance, `?after=${start.nextCursor}&wait=25`))
  const refused = await until('a refusal', async () => {
    const answer = await read(api, instance)
    return answer.status === 429 ? answer : undefined
  })
  expect(refused.body.error.code).toBe('too_many_readers')
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  expect((await read(api, other)).status).toBe(200)
  await receive(api, instance, 1)
  for (const poll of polls) expect((await poll).body.data).toHaveLength(1)
  expect(await until('a place', async () => (await read(api, instance)).status === 200 || undefined)).toBe(true)
})

test.each(ONE_STORE)('on %s, a poll ends with 401 as soon as its token is replaced', async on => {
  await using api = await ApiHarness.start({ on })
  const instance = await api.createConnected()
  const { body: start } = await read(api, instance, '?after=latest')
  const startedAt = performance.now()
  const polled = read(api, instance, `?after=${start.nextCursor}&wait=25`)
  await api.admin('POST', `/instances/${instance.id}/token`)
  expect((await polled).status).toBe(401)
  expect(performance.now() - startedAt).toBeLessThan(WAIT_MS / 2)
})

test('open polls are answered when the server closes', async () => {
  const api = await ApiHarness.start()
  const instance = await api.createConnected()
  const { body: start } = await read(api, instance, '?after=latest')
  const polled = read(api, instance, `?after=${start.nextCursor}&wait=25`)
  await until('the poll', () => api.server.server.listening)
  const [answer] = await Promise.all([polled.catch(() => null), api[Symbol.asyncDispose]()])
  if (answer) expect([200, 503]).toContain(answer.status)
})
