import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { noteSecret } from '../../../logs/log-capture.ts'
import { until } from '../../../until.ts'
import { ApiHarness, type Created } from '../harness.ts'
import { createPerson } from '../people/people.ts'

/** As many as a node serves at once. */
const MAX_OPEN = 2_000
/** Fewer than the system lets wait to be accepted (Node asks for 511); it drops what comes above that. */
const CONNECTED_AT_ONCE = 200

let api: ApiHarness
let other: Created
let own: Created
beforeAll(async () => {
  // The tested webhooks never answer.
  const post = () => new Promise<never>(() => undefined)
  api = await ApiHarness.start({
    options: { webhooks: { post, headersOf: () => ({}) }, proxies: { check: () => new Promise(() => undefined) } },
  })
  other = await api.createConnected()
  own = await api.createConnected()
  await api.call({
    method: 'PUT',
    path: `/v1/webhooks/${own.id}`,
    key: own.token,
    body: { url: 'https://example.com/' },
  })
})
afterAll(() => api[Symbol.asyncDispose]())

interface Held {
  line: string
  headers: Record<string, string>
  /** Default: most of it never arrives. */
  body?: string
}

/** Opens as many requests as a node serves at once. @returns a function that ends them */
async function hold({ line, headers, body }: Held): Promise<() => Promise<void>> {
  let arrived = 0
  const count = () => {
    arrived += 1
  }
  api.server.server.on('request', count)
  const fields = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const length = `Content-Type: application/json\r\nContent-Length: ${body?.length ?? 100}\r\n\r\n`
  const head = `${line} HTTP/1.1\r\nHost: 127.0.0.1:${api.port}\r\n${fields.join('')}${length}`
  const sockets: Socket[] = []
  while (sockets.length < MAX_OPEN) {
    const group = Array.from({ length: CONNECTED_AT_ONCE }, () => connect(api.port, '127.0.0.1'))
    await Promise.all(group.map(socket => once(socket, 'connect')))
    for (const socket of group) {
      socket.on('error', () => undefined)
      socket.resume().write(head + (body ?? '{'))
    }
    sockets.push(...group)
    await until('the requests', () => arrived >= sockets.length)
  }
  api.server.server.off('request', count)
  return async () => {
    for (const socket of sockets) socket.destroy()
    await until('their end', () => connections().then(open => open < CONNECTED_AT_ONCE / 4))
  }
}

function connections(): Promise<number> {
  return new Promise((resolve, reject) => {
    api.server.server.getConnections((error, open) => (error ? reject(error) : resolve(open)))
  })
}

/** The headers of a browser that has opened a link. */
async function openLink(): Promise<Record<string, string>> {
  const { id } = await api.createInstance()
  const link = await api.admin('POST', `/instances/${id}/links`, { expiresInMinutes: 5 })
  const token = String(link.body.data.url).split('#')[1]
  noteSecret(token)
  const { headers } = await api.call({ method: 'POST', path: '/link/read', body: { token } })
  const cookie = headers.get('set-cookie')!.split(';')[0]!
  expect((await api.call({ method: 'POST', path: '/link/read', headers: { cookie }, body: { token } })).status).toBe(
    200,
  )
  return { cookie }
}

// Each call makes the service remember the key, so the caller counts as known.
async function withToken(): Promise<Record<string, string>> {
  const headers = { authorization: `Bearer ${own.token}` }
  expect((await api.call({ path: '/v1/instance', headers })).status).toBe(200)
  return headers
}

async function withSession(role: 'viewer' | 'operator'): Promise<Record<string, string>> {
  const { headers } = await createPerson(api, role, [own.id])
  expect((await api.call({ path: '/admin/v1/session', headers })).status).toBe(200)
  return headers
}

const CASES: [string, string, () => Promise<Record<string, string>>, string?][] = [
  ['a token, on the page of links', 'POST /link/read', withToken],
  ['a token, when signing in', 'POST /admin/v1/session', withToken],
  ['a token, in a call of its own', 'POST /v1/messages/text', withToken],
  ['a link', 'POST /link/read', openLink],
  ["a viewer's session", 'POST /admin/v1/session/password', () => withSession('viewer')],
  ['an operator, in tests of a webhook', 'POST webhook/test', () => withSession('operator'), '{}'],
  ['an operator, in checks of a proxy', 'PUT proxy', () => withSession('operator'), '{"url":"http://192.0.2.1:1/"}'],
]

describe('2,000 requests at once', () => {
  test.each(CASES)('of somebody with %s do not affect others', async (_who, line, keyOf, body) => {
    const headers = await keyOf()
    const path = line.replace(/ (webhook|proxy)/, ` /admin/v1/instances/${own.id}/$1`)
    const end = await hold({ line: path, headers, ...(body !== undefined && { body }) })
    try {
      expect((await api.call({ path: '/v1/instance', key: other.token })).status).toBe(200)
      expect((await api.admin('GET', '/instances')).status).toBe(200)
      const text = { to: '5511987654321', text: randomBytes(4).toString('hex') }
      expect((await api.send(other, text)).status).toBe(202)
    } finally {
      await end()
    }
    expect((await api.call({ path: '/v1/instance', key: own.token })).status).toBe(200)
  })
})
