import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { formatCursor } from '../../../src/domain/events/feed-place.ts'
import { incoming } from '../../contract/fixture.ts'
import { ONE_STORE } from '../../databases/one-store.ts'
import { onThisMachine } from '../../deadlines.ts'
import { until } from '../../until.ts'
import { ApiHarness, type Created } from '../api/harness.ts'
import { FeedStream } from './feed-stream.ts'

/** `GET /v1/events/stream` (contract §4, "The feed"). */

async function receive(api: ApiHarness, { id }: Created, count: number, text = 'Hi'): Promise<void> {
  const lease = await api.lease(id)
  await Promise.all(
    Array.from({ length: count }, () => api.store.events.storeIncoming(lease, incoming({ text }), Date.now())),
  )
}

test.each(ONE_STORE)(
  'on %s, a stream sends what is kept, then each event, and continues after Last-Event-ID',
  async on => {
    await using api = await ApiHarness.start({ on })
    const instance = await api.createConnected()
    await receive(api, instance, 500)
    const all: string[] = []
    let lastEventId = ''
    for (let round = 0; round < 3; round += 1) {
      const stream = await FeedStream.open(api.url, instance.token, { lastEventId, query: '?event=message.received' })
      expect(stream.response.headers.get('content-type')).toMatch(/^text\/event-stream/)
      const expected = 500 + round * 40 - all.length
      await until('what is kept', () => stream.items.length >= expected)
      await receive(api, instance, 40)
      await until('the new events', () => stream.items.length === expected + 40)
      stream.leave()
      all.push(...stream.items.map(({ id }) => id))
      lastEventId = stream.lastEventId!
      expect(lastEventId).toBe(stream.items.at(-1)!.cursor)
    }
    expect(new Set(all).size).toBe(620)
    expect(lastEventId).toBe(formatCursor(await api.store.events.findFeedEnd(instance.id)))
  },
)

test('a reader that got no event yet continues where it began', async () => {
  await using api = await ApiHarness.start()
  const instance = await api.createConnected()
  await receive(api, instance, 3)
  const first = await FeedStream.open(api.url, instance.token, { query: '?after=latest' })
  await until('the cursor', () => first.lastEventId)
  first.leave()
  await receive(api, instance, 2)
  const next = await FeedStream.open(api.url, instance.token, {
    query: '?after=latest',
    lastEventId: first.lastEventId!,
  })
  await until('the events in between', () => next.items.length === 2)
  next.leave()
  expect(first.items).toEqual([])
})

test('the cursor of a reader of one kind also moves past events of other kinds', async () => {
  await using api = await ApiHarness.start()
  const instance = await api.createConnected()
  const stream = await FeedStream.open(api.url, instance.token, { query: '?event=message.failed' })
  await receive(api, instance, 30)
  const end = formatCursor(await api.store.events.findFeedEnd(instance.id))
  await until('the cursor', () => stream.lastEventId === end)
  expect(stream.items).toEqual([])
  stream.leave()
})

test.each(ONE_STORE)('on %s, a stream ends as soon as its token is replaced or its instance deleted', async on => {
  await using api = await ApiHarness.start({ on })
  const [replaced, deleted] = [await api.createConnected(), await api.createConnected()]
  const streams = await Promise.all([replaced, deleted].map(({ token }) => FeedStream.open(api.url, token)))
  for (const stream of streams) await until('the start', () => stream.lastEventId)
  await api.admin('POST', `/instances/${replaced.id}/token`)
  await until('the end', () => streams[0]!.ended)
  await api.admin('DELETE', `/instances/${deleted.id}`)
  await until('the end', () => streams[1]!.ended)
  const again = await FeedStream.open(api.url, replaced.token)
  expect(again.response.status).toBe(401)
})

test('a replaced token ends a stream even without a hint, before anything else is sent', async () => {
  const deaf = { shared: false, on: () => () => undefined }
  await using api = await ApiHarness.start({ store: () => ({ hints: deaf }) })
  const instance = await api.createConnected()
  const stream = await FeedStream.open(api.url, instance.token, { query: '?after=latest' })
  await until('the start', () => stream.lastEventId)
  await api.store.instances.replaceToken(instance.id, new Uint8Array(32))
  await receive(api, instance, 1)
  await until('the end', () => stream.ended)
  expect(stream.items).toEqual([])
})

test.each(ONE_STORE)('on %s, the streams and polls of a key end as soon as it is revoked, and no others', async on => {
  await using api = await ApiHarness.start({ on })
  const instance = await api.createConnected()
  const createKey = async (): Promise<{ id: string; key: string }> =>
    (await api.admin('POST', `/instances/${instance.id}/keys`, { name: 'CRM', scopes: ['events'] })).body.data
  const [revoked, kept] = [await createKey(), await createKey()]
  const open = (token: string) => FeedStream.open(api.url, token, { query: '?after=latest' })
  const stream = await open(revoked.key)
  const others = await Promise.all([open(kept.key), open(instance.token)])
  for (const each of [stream, ...others]) await until('the start', () => each.lastEventId)
  const polled = api.call({ path: `/v1/events?after=${stream.lastEventId}&wait=25`, key: revoked.key })
  await api.admin('DELETE', `/instances/${instance.id}/keys/${revoked.id}`)
  await until('the end', () => stream.ended)
  expect((await polled).body.error?.code).toBe('invalid_token')
  await receive(api, instance, 1)
  for (const other of others) await until('the event', () => other.items.length === 1)
  expect(stream.items).toEqual([])
  for (const other of others) other.leave()
})

test.each(ONE_STORE)('on %s, a stream ends when its key expires', async on => {
  await using api = await ApiHarness.start({ on })
  const instance = await api.createConnected()
  const expiresAt = new Date(Date.now() + 5_000).toISOString()
  const body = { name: 'CRM', scopes: ['events'], expiresAt }
  const { key } = (await api.admin('POST', `/instances/${instance.id}/keys`, body)).body.data
  const stream = await FeedStream.open(api.url, key)
  await until('the end', () => stream.ended)
  expect((await FeedStream.open(api.url, key)).response.status).toBe(401)
})

test('the streams and polls of an instance share five places, whichever of its keys they use', async () => {
  await using api = await ApiHarness.start()
  const instance = await api.createConnected()
  const created = await api.admin('POST', `/instances/${instance.id}/keys`, { name: 'CRM', scopes: ['events'] })
  const keys = [instance.token, created.body.data.key as string]
  const streams = await Promise.all([0, 1, 0].map(index => FeedStream.open(api.url, keys[index]!)))
  for (const stream of streams) await until('the start', () => stream.lastEventId)
  const after = streams[0]!.lastEventId
  const polls = keys.map(key => api.call({ path: `/v1/events?after=${after}&wait=25`, key }))
  const refused = await until('a refusal', async () => {
    const answer = await api.call({ path: '/v1/events', key: instance.token })
    return answer.status === 429 ? answer : undefined
  })
  expect(refused.body.error.code).toBe('too_many_readers')
  expect((await FeedStream.open(api.url, keys[1]!)).response.status).toBe(429)
  await receive(api, instance, 1)
  for (const poll of polls) expect((await poll).body.data).toHaveLength(1)
  for (const stream of streams) stream.leave()
})

test('a sixth stream is refused, and its place is free when one ends', async () => {
  await using api = await ApiHarness.start()
  const instance = await api.createConnected()
  const streams = await Promise.all(Array.from({ length: 5 }, () => FeedStream.open(api.url, instance.token)))
  expect(streams.map(({ response }) => response.status)).toEqual(Array(5).fill(200))
  const sixth = await FeedStream.open(api.url, instance.token)
  expect(sixth.response.status).toBe(429)
  streams[0]!.leave()
  const seventh = await until('a place', async () => {
    const stream = await FeedStream.open(api.url, instance.token)
    return stream.response.status === 200 ? stream : undefined
  })
  for (const stream of [...streams, seventh]) stream.leave()
})

test('an expired or malformed Last-Event-ID is refused with a status', async () => {
  await using api = await ApiHarness.start()
  const instance = await api.createConnected()
  const status = async (lastEventId: string) =>
    (await FeedStream.open(api.url, instance.token, { lastEventId })).response.status
  expect(await status('999999')).toBe(410)
  expect(await status('evt_1')).toBe(400)
})

test('a reader that does not read makes the service hold one page, not the feed, and delays nobody', async () => {
  await using api = await ApiHarness.start()
  const instance = await api.createConnected()
  let pages = 0
  const { events } = api.store
  const readFeed = events.readFeed.bind(events)
  events.readFeed = (...call) => {
    pages += 1
    return readFeed(...call)
  }
  await receive(api, instance, 400, 'x'.repeat(60_000))
  const socket = connect(api.port, '127.0.0.1').pause()
  const head = `GET /v1/events/stream HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${instance.token}\r\n\r\n`
  socket.write(head)
  const reader = await FeedStream.open(api.url, instance.token)
  await until(
    'the other reader',
    () => reader.items.filter(({ body }) => body.event === 'message.received').length === 400,
  )
  reader.leave()
  const socketBuffers = 60
  expect(pages).toBeLessThan(400 / 4 + socketBuffers + 10)
  socket.destroy()
})

test('open streams end when the server closes', async () => {
  const api = await ApiHarness.start()
  const instance = await api.createConnected()
  const stream = await FeedStream.open(api.url, instance.token)
  await until('the start', () => stream.lastEventId)
  const startedAt = performance.now()
  await api[Symbol.asyncDispose]()
  expect(performance.now() - startedAt).toBeLessThan(onThisMachine(3_500))
  await until('the end', () => stream.ended)
})
