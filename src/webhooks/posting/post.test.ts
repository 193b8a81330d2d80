import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { createServer as createTcpServer, type Server } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createCertificate } from '../../../test/certificate.ts'
import { type Answer, createReceiver, type Receiver } from '../../../test/receiver.ts'
import { type AddressPolicy, createAddressGuard } from '../../outbound/address-guard.ts'
import { createPoster, type Poster, type PosterOptions } from './post.ts'

const TIMEOUT_MS = 400
/** Waits that a test expects to be cut short are this long, so that even a slow machine never reaches their end. */
const NEVER_MS = 600_000
/** Far less than `NEVER_MS`, and far longer than a slow machine takes for an attempt. */
const CUT_SHORT_MS = 60_000
/** How long the body of a response is read. */
const BODY_MS = 2_000
const ON_LOOPBACK: AddressPolicy = { loopbackAndPrivateAllowed: true, allowedNetworks: [], ownPorts: [] }

let receiver: Receiver
const disposals: (() => unknown)[] = []

beforeEach(async () => {
  receiver = await createReceiver()
  disposals.push(() => receiver.close())
})

afterEach(async () => {
  for (const dispose of disposals.splice(0).reverse()) await dispose()
})

function poster(options: Partial<PosterOptions> = {}): Poster {
  const created = createPoster({ guard: createAddressGuard(ON_LOOPBACK), timeoutMs: NEVER_MS, ...options })
  disposals.push(() => created.close())
  return created
}

function post(url: string, by = poster()) {
  return by.send({ url, headers: { 'Content-Type': 'application/json' }, body: Buffer.from('{"a":"é"}') })
}

async function timed<T>(work: Promise<T>): Promise<{ outcome: T; ms: number }> {
  const start = performance.now()
  return { outcome: await work, ms: performance.now() - start }
}

async function listen(server: Server): Promise<number> {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  disposals.push(() => server.close())
  return (server.address() as AddressInfo).port
}

describe('an attempt', () => {
  test('posts the given bytes and headers, and does not accept compression', async () => {
    const url = `${receiver.url}?token=x%20y#fragment`
    expect(await post(url)).toEqual({ kind: 'answered', status: 200, excerpt: null })
    const [request] = receiver.requests
    expect(request).toMatchObject({ method: 'POST', path: '/hook?token=x%20y' })
    expect(request?.body.toString()).toBe('{"a":"é"}')
    expect(request?.headers['content-type']).toBe('application/json')
    expect(request?.headers['content-length']).toBe('10')
    expect(request?.headers).not.toHaveProperty('accept-encoding')
    expect(request?.headers).not.toHaveProperty('transfer-encoding')
  })

  test.each([200, 201, 204, 299, 301, 302, 307, 400, 401, 404, 410, 429, 500, 503])(
    'is answered by a %i',
    async status => {
      receiver.answerWith({ kind: 'status', status })
      expect(await post(receiver.url)).toMatchObject({ kind: 'answered', status })
      expect(receiver.requests).toHaveLength(1)
    },
  )

  test('does not follow a redirect, and its excerpt has the target', async () => {
    receiver.answerWith({ kind: 'redirect', to: 'https://example.com/new', status: 308 })
    expect(await post(receiver.url)).toEqual({
      kind: 'answered',
      status: 308,
      excerpt: 'Location: https://example.com/new\n\n',
    })
    expect(receiver.requests).toHaveLength(1)
  })

  test('without a status line fails at the deadline', async () => {
    receiver.answerWith({ kind: 'hang' })
    const { outcome, ms } = await timed(post(receiver.url, poster({ timeoutMs: TIMEOUT_MS })))
    expect(outcome).toEqual({ kind: 'failed', error: 'timeout' })
    expect(ms).toBeGreaterThan(TIMEOUT_MS * 0.9)
  })

  test('is answered if the status line comes before the deadline and the body does not', async () => {
    receiver.answerWith({ kind: 'drip', status: 200, everyMs: 20 })
    const attempt = post(receiver.url, poster({ timeoutMs: BODY_MS * 0.9 }))
    // Starts no earlier than `attempt`, and reads its body for the longest time that is allowed.
    const longest = post(receiver.url, poster({ timeoutMs: NEVER_MS }))
    const first = await Promise.race([attempt.then(() => 'at the deadline'), longest.then(() => 'later')])
    expect(first).toBe('at the deadline')
    expect(await attempt).toMatchObject({ kind: 'answered', status: 200, excerpt: expect.stringMatching(/^\.+$/) })
    await longest
  })

  test('reads a body that never ends for 2 s after the status line', async () => {
    receiver.answerWith({ kind: 'drip', status: 503, everyMs: 50 })
    const { outcome, ms } = await timed(post(receiver.url, poster({ timeoutMs: NEVER_MS })))
    expect(outcome).toMatchObject({ kind: 'answered', status: 503 })
    expect(ms).toBeGreaterThan(BODY_MS - 100)
    expect(ms).toBeLessThan(CUT_SHORT_MS)
  })

  test('reads 64 KiB of a huge body and keeps 1 KiB', async () => {
    const huge = { kind: 'huge', status: 200, bytes: 200 * 1024 * 1024 } as const
    receiver.answerWith(({ index }) => (index === 0 ? { kind: 'drip', status: 200, everyMs: 50 } : huge))
    const by = poster({ timeoutMs: NEVER_MS })
    const longest = post(receiver.url, by).then(() => 'a body read for 2 s')
    await receiver.waitFor(1)
    const attempt = post(receiver.url, by)
    expect(await Promise.race([attempt.then(() => 'the huge one'), longest])).toBe('the huge one')
    expect(await attempt).toEqual({ kind: 'answered', status: 200, excerpt: 'x'.repeat(1024) })
    await longest
  })

  test('is answered if the connection is reset after the status line', async () => {
    receiver.answerWith({ kind: 'reset', after: 'status', status: 202 })
    expect(await post(receiver.url)).toMatchObject({ kind: 'answered', status: 202 })
  })

  test('keeps valid text without U+0000, cut between characters', async () => {
    const body = Buffer.concat([Buffer.from([0xff, 0]), Buffer.from('é'.repeat(1_000))])
    receiver.answerWith({ kind: 'status', status: 200, body })
    const outcome = await post(receiver.url)
    const excerpt = outcome.kind === 'answered' ? outcome.excerpt : null
    expect(excerpt).toMatch(/^\uFFFD\uFFFDé+\uFFFD?$/)
    expect(Buffer.byteLength(excerpt ?? '')).toBeLessThanOrEqual(1_024)
  })

  const interim = (status: number, more = '') => `HTTP/1.1 ${status} Wait\r\n${more}\r\n`
  const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

  test.each([
    ['100', interim(100)],
    ['102', interim(102)],
    ['103', interim(103, 'Link: </a.css>; rel=preload\r\n')],
    ['several of them', interim(100) + interim(103) + interim(102).repeat(14)],
  ])('is answered by the final status after interim answers: %s', async (_, before) => {
    receiver.answerWith({ kind: 'raw', text: before + OK })
    expect(await post(receiver.url)).toEqual({ kind: 'answered', status: 200, excerpt: 'ok' })
    expect(receiver.requests).toHaveLength(1)
  })

  test('is answered by a final status that comes later than an interim response, on a reused connection', async () => {
    const by = poster()
    const server = createTcpServer(socket =>
      socket.on('data', () => {
        socket.write(interim(100))
        // Waits for an exchange over another connection. By then the interim response has been read.
        void post(receiver.url).then(() => socket.write(OK))
      }),
    )
    let connections = 0
    server.on('connection', () => {
      connections += 1
    })
    const url = `http://127.0.0.1:${await listen(server)}/`
    expect(await post(url, by)).toMatchObject({ kind: 'answered', status: 200 })
    expect(await post(url, by)).toMatchObject({ kind: 'answered', status: 200 })
    expect(connections).toBe(1)
  })

  const failures: [string, Answer, string][] = [
    ['17 interim answers', { kind: 'raw', text: interim(103).repeat(17) + OK }, 'protocol_error'],
    [
      'interim answers with many headers',
      { kind: 'raw', text: interim(103, `X: ${'x'.repeat(6_000)}\r\n`).repeat(3) + OK },
      'protocol_error',
    ],
    ['a reset', { kind: 'reset', after: 'request' }, 'connection_reset'],
    ['a connection closed without an answer', { kind: 'raw', text: '' }, 'connection_reset'],
    ['something that is not HTTP', { kind: 'raw', text: 'SSH-2.0-OpenSSH_9.9\r\n' }, 'protocol_error'],
    [
      'headers without end',
      { kind: 'raw', text: `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(20_000)}\r\n\r\n` },
      'protocol_error',
    ],
    ['headers that are cut off', { kind: 'raw', text: 'HTTP/1.1 200 OK\r\nX: y\r\n' }, 'connection_reset'],
    [
      'an upgrade that was not requested',
      { kind: 'raw', text: 'HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n' },
      'connection_reset',
    ],
  ]

  test.each(failures)('fails after %s, in one request', async (_, answer, error) => {
    receiver.answerWith(answer)
    expect(await post(receiver.url)).toEqual({ kind: 'failed', error })
    expect(receiver.requests).toHaveLength(1)
  })

  test('fails if no process listens on the port', async () => {
    const port = await listen(createTcpServer())
    await (disposals.pop() as () => unknown)()
    expect(await post(`http://127.0.0.1:${port}/`)).toEqual({ kind: 'failed', error: 'connection_refused' })
  })

  test('is aborted by its signal, and not sent if the signal is already aborted', async () => {
    receiver.answerWith({ kind: 'hang' })
    const abort = new AbortController()
    const request = { url: receiver.url, headers: {}, body: Buffer.from('{}'), signal: abort.signal }
    const by = poster({ timeoutMs: NEVER_MS })
    const sent = by.send(request)
    await receiver.waitFor(1)
    abort.abort()
    expect((await timed(sent)).ms).toBeLessThan(CUT_SHORT_MS)
    expect(await by.send(request)).toEqual({ kind: 'failed', error: 'timeout' })
    expect(receiver.requests).toHaveLength(1)
  })

  test('reuses an open connection, except one that has been idle for so long that the consumer may be closing it', async () => {
    const by = poster()
    const closings: Promise<unknown>[] = []
    const server = createHttpServer({ keepAliveTimeout: 0 }, (_, response) => response.end())
    server.on('connection', socket => closings.push(once(socket, 'close')))
    const url = `http://127.0.0.1:${await listen(server)}/`
    await post(url, by)
    await post(url, by)
    expect(closings).toHaveLength(1)
    // Real time: Node's idle timer cannot be replaced. Many consumers close idle connections after 5 s.
    // A stalled event loop delays both timers.
    const consumer = sleep(5_000, 'the consumer')
    expect(await Promise.race([closings[0]!.then(() => 'Pombal'), consumer])).toBe('Pombal')
    await post(url, by)
    expect(closings).toHaveLength(2)
  })
})

describe('over TLS', () => {
  test('an untrusted certificate is rejected before the request is written', async () => {
    let requests = 0
    const server = createTlsServer(createCertificate(), (_, response) => {
      requests += 1
      response.end()
    })
    const port = await listen(server)
    expect(await post(`https://127.0.0.1:${port}/`)).toEqual({ kind: 'failed', error: 'tls_failed' })
    expect(requests).toBe(0)
  })

  test('the handshake fails if the consumer speaks plain HTTP', async () => {
    expect(await post(`https://127.0.0.1:${receiver.port}/`)).toEqual({ kind: 'failed', error: 'tls_failed' })
  })
})

describe('names', () => {
  const at =
    (...addresses: string[]) =>
    async () =>
      addresses.map(address => ({ address, family: address.includes(':') ? 6 : 4 }))

  test('are resolved to the address that is posted to', async () => {
    const outcome = await post(`http://consumer.test:${receiver.port}/`, poster({ resolve: at('127.0.0.1') }))
    expect(outcome).toMatchObject({ kind: 'answered', status: 200 })
    expect(receiver.requests[0]?.headers.host).toBe(`consumer.test:${receiver.port}`)
  })

  test.each([
    ['a refused address', ['169.254.169.254']],
    ['a good and a refused address', ['127.0.0.1', '169.254.169.254']],
    ['a refused address in IPv6', ['::ffff:169.254.169.254']],
    ['nothing', []],
  ])('that resolve to %s are blocked without a connection', async (_, addresses) => {
    const outcome = await post(`http://consumer.test:${receiver.port}/`, poster({ resolve: at(...addresses) }))
    expect(outcome).toEqual({ kind: 'failed', error: 'blocked_address' })
    expect(receiver.requests).toHaveLength(0)
  })

  test('are resolved on behalf of the instance that owns the endpoint', async () => {
    const owners: unknown[] = []
    const by = poster({
      resolve: async (_hostname, owner) => {
        owners.push(owner)
        return [{ address: '127.0.0.1', family: 4 }]
      },
    })
    const url = `http://consumer.test:${receiver.port}/`
    await by.send({
      url,
      headers: {},
      body: Buffer.from('{}'),
      endpoint: { instanceId: 'inst_1', id: 'endpoint_1' } as never,
    })
    expect(owners).toEqual(['inst_1'])
  })

  test('that resolve to this machine are blocked at the port of this process', async () => {
    const guard = createAddressGuard({ ...ON_LOOPBACK, ownPorts: [receiver.port] })
    const by = poster({ guard, resolve: at('127.0.0.1') })
    expect(await post(`http://consumer.test:${receiver.port}/`, by)).toEqual({
      kind: 'failed',
      error: 'blocked_address',
    })
    expect(await post(receiver.url, by)).toEqual({ kind: 'failed', error: 'blocked_address' })
    expect(await post(`http://0.0.0.0:${receiver.port}/`, by)).toEqual({ kind: 'failed', error: 'blocked_address' })
    expect(receiver.requests).toHaveLength(0)
  })

  test('that change their address after the check are still connected to the checked address', async () => {
    const answers = [['127.0.0.1'], ['169.254.169.254']]
    let asked = 0
    const resolve = () => at(...(answers[asked++] ?? []))()
    receiver.answerWith({ kind: 'status', status: 200, headers: { connection: 'close' } })
    const by = poster({ resolve })
    const url = `http://rebinds.test:${receiver.port}/`
    expect(await post(url, by)).toMatchObject({ kind: 'answered' })
    expect(await post(url, by)).toEqual({ kind: 'failed', error: 'blocked_address' })
    expect(receiver.requests).toHaveLength(1)
  })

  test('are blocked by the address of the connected peer if the look-up was bypassed', async () => {
    const real = createAddressGuard(ON_LOOPBACK)
    let judged = 0
    const guard = {
      ...real,
      allows: (address: string, port: number) => (judged++ === 0 ? real.allows(address, port) : false),
    }
    const by = poster({ guard, resolve: at('127.0.0.1') })
    expect(await post(`http://consumer.test:${receiver.port}/`, by)).toEqual({
      kind: 'failed',
      error: 'blocked_address',
    })
    expect(judged).toBe(2)
    expect(receiver.requests).toHaveLength(0)
  })

  test('that do not exist fail', async () => {
    const notFound = () => Promise.reject(Object.assign(new Error('none'), { code: 'ENOTFOUND' }))
    expect(await post('http://gone.test/', poster({ resolve: notFound }))).toEqual({
      kind: 'failed',
      error: 'dns_failed',
    })
  })

  test('fail at the deadline if their look-up hangs', async () => {
    const hanging = poster({ timeoutMs: TIMEOUT_MS, resolve: () => new Promise(() => {}) })
    const { outcome, ms } = await timed(post('http://hangs.test/', hanging))
    expect(outcome).toEqual({ kind: 'failed', error: 'timeout' })
    expect(ms).toBeGreaterThan(TIMEOUT_MS * 0.9)
  })
})

test('IP addresses are checked without a look-up', async () => {
  let asked = 0
  const by = poster({
    guard: createAddressGuard({ ...ON_LOOPBACK, loopbackAndPrivateAllowed: false }),
    resolve: async () => {
      asked += 1
      return []
    },
  })
  for (const host of ['127.0.0.1', '127.1', '0x7f000001', '[::ffff:127.0.0.1]', '169.254.169.254', '[::7f00:1]']) {
    for (const protocol of ['http', 'https']) {
      const outcome = await post(`${protocol}://${host}:${receiver.port}/`, by)
      expect(outcome, host).toEqual({ kind: 'failed', error: 'blocked_address' })
    }
  }
  expect(asked).toBe(0)
  expect(receiver.requests).toHaveLength(0)
})
