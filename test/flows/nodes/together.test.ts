import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Service } from '../../service.ts'
import { until } from '../../until.ts'
import { FeedStream } from '../feed/feed-stream.ts'
import { type Linked, NodesHarness } from './harness.ts'

const CONTACT = '5511987654321'

/** The guarantees of a single node also hold for several nodes together. */
describe('two nodes', () => {
  let harness: NodesHarness
  let linked: Linked
  let one: Service
  let other: Service

  beforeAll(async () => {
    harness = await NodesHarness.open(2, { RATE_LIMIT_PER_MINUTE: '150' })
    linked = await harness.link(harness.nodes[0]!)
    const owner = await until('an owner', () => harness.ownerOf(linked.id))
    other = harness.nodes.find(node => node !== owner)!
    one = owner
  })
  afterAll(() => harness?.[Symbol.asyncDispose]())

  const ask = (node: Service, path: string, options: RequestInit = {}) => fetch(`${node.url}${path}`, options)
  const bearer = (key: string) => ({ authorization: `Bearer ${key}` })

  test('know a new token and a replaced one from the next call on', async () => {
    const { id, token } = await one.admin.createInstance('whatsapp')
    const status = async (node: Service, key: string) =>
      (await ask(node, '/v1/instance', { headers: bearer(key) })).status
    expect(await status(other, token)).toBe(200)
    const replaced = await ask(one, `/admin/v1/instances/${id}/token`, {
      method: 'POST',
      headers: bearer(one.adminKey),
    })
    const { data } = (await replaced.json()) as { data: { token: string } }
    expect(await status(other, token)).toBe(401)
    expect(await status(other, data.token)).toBe(200)
    await other.admin.deleteInstance(id)
    expect(await status(one, data.token)).toBe(401)
  })

  test('accept one message per idempotency key, whichever node is called', async () => {
    const key = randomUUID()
    const clients = [one, other].map(node => linked.through(node))
    const sent = await Promise.all([...clients, ...clients].map(client => client.send(CONTACT, 'once', key)))
    expect(new Set(sent.map(({ id }) => id)).size).toBe(1)
    expect(sent.filter(({ replayed }) => !replayed)).toHaveLength(1)
  })

  test('post to the URL that was set through another node', async () => {
    await linked.through(other).setWebhook(`${harness.receiver.url}/moved`)
    const { id } = await linked.through(one).send(CONTACT, 'to the new address')
    await harness.untilReported(id, 'message.sent')
    const told = harness.receiver.requests.filter(({ body }) => body.toString().includes(id))
    expect(told.every(({ path }) => path.endsWith('/moved'))).toBe(true)
  })

  test('a panel session that is opened on one is valid on the other, and ends there immediately', async () => {
    const signedIn = await ask(one, '/admin/v1/session', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ key: one.adminKey }),
    })
    const cookie = signedIn.headers.get('set-cookie')?.split(';')[0] ?? ''
    const changes = await ask(other, '/admin/v1/changes', { headers: { cookie } })
    const told = read(changes)
    const { id } = await linked.through(one).send(CONTACT, 'seen on the other')
    await until('the change', () => told.text.includes(`"instanceId":"${linked.id}","what":"log"`))
    await one.admin.rename(linked.id, 'Renamed')
    await until('the name', () => told.text.includes(`"instanceId":"${linked.id}","what":"connection"`))
    await harness.untilReported(id, 'message.sent')

    const signedOut = await ask(one, '/admin/v1/session', {
      method: 'DELETE',
      headers: { cookie, origin: new URL(one.url ?? '').origin },
    })
    expect(signedOut.status).toBe(204)
    expect((await ask(other, '/admin/v1/instances', { headers: { cookie } })).status).toBe(401)
    await until('the stream to end', () => told.ended)
  })

  test('a number can be linked through a node that does not run it, which shows the code immediately', async () => {
    const { id } = await other.admin.createInstance('whatsapp')
    const owner = await until('an owner', () => harness.ownerOf(id))
    const bystander = owner === one ? other : one
    const shown = read(
      await ask(bystander, `/admin/v1/instances/${id}/connection/stream`, { headers: bearer(one.adminKey) }),
    )
    await bystander.admin.connect(id)
    const qr = await until('the code', () => /"qr":"([^"]+)"/.exec(shown.text)?.[1])
    await harness.network.scanQr(qr)
    await until('connected', () => shown.text.includes('"state":"connected"'))
    await bystander.admin.logout(id)
    await until('logged out', () => shown.text.includes('"state":"logged_out"'))
    await one.admin.deleteInstance(id)
    await until('the end', () => shown.text.includes('event: deleted'))
  })

  test('a feed that began on one continues on the other, and ends there when its key is revoked', async () => {
    const { id, token } = await one.admin.createInstance('whatsapp')
    const call = async (method: string, path: string, body?: object) => {
      const headers = { ...bearer(one.adminKey), ...(body && { 'content-type': 'application/json' }) }
      const answer = await ask(one, `/admin/v1/instances/${id}/keys${path}`, {
        method,
        headers,
        ...(body && { body: JSON.stringify(body) }),
      })
      return answer.status === 201 ? ((await answer.json()) as { data: { id: string; key: string } }).data : null
    }
    const key = (await call('POST', '', { name: 'CRM', scopes: ['events'] }))!
    const start = await FeedStream.open(one.url ?? '', token, { query: '?after=latest' })
    await until('the cursor', () => start.lastEventId)
    start.leave()
    await one.admin.connect(id)
    const next = await FeedStream.open(other.url ?? '', key.key, { lastEventId: start.lastEventId! })
    await until('the event', () => next.items.some(({ body }) => body.event === 'instance.linking'))
    await call('DELETE', `/${key.id}`)
    await until('the end', () => next.ended)
    expect((await FeedStream.open(other.url ?? '', key.key)).response.status).toBe(401)
    await one.admin.deleteInstance(id)
  })

  test('count the calls of an instance together', async () => {
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, n) =>
        ask(n % 2 === 0 ? one : other, '/v1/instance', { headers: bearer(linked.token) }),
      ),
    )
    expect(answers.filter(({ status }) => status === 200).length).toBeLessThanOrEqual(150)
    expect(answers.filter(({ status }) => status === 429).length).toBeGreaterThanOrEqual(50)
  })

  test('count wrong keys together', async () => {
    const guess = (node: Service) =>
      ask(node, '/admin/v1/session', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ key: 'a guess' }),
      })
    for (let n = 0; n < 10; n += 1) expect((await guess(n % 2 === 0 ? one : other)).status).toBe(401)
    expect((await guess(one)).status).toBe(429)
    expect((await guess(other)).status).toBe(429)
    expect((await one.admin.connection(linked.id)).state).toBe('connected')
  })
})

/** Server-sent events as they come. */
function read(response: Response): { text: string; ended: boolean } {
  const told = { text: '', ended: false }
  void (async () => {
    for await (const chunk of response.body ?? []) told.text += Buffer.from(chunk).toString()
  })()
    .catch(() => undefined)
    .finally(() => {
      told.ended = true
    })
  return told
}
