import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer, type TlsOptions } from 'node:tls'
import { gzipSync } from 'node:zlib'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { systemClock } from '../../../src/kit/clock.ts'
import { createAddressGuard } from '../../../src/outbound/address-guard.ts'
import { type Lookup, Resolver } from '../../../src/outbound/resolver.ts'
import { createPoster, type PostOutcome } from '../../../src/webhooks/posting/post.ts'
import { createCertificate, trust } from '../../certificate.ts'
import { CONDITION_WITHIN_MS } from '../../deadlines.ts'
import { createReceiver } from '../../receiver.ts'
import { WebhookHarness } from './harness.ts'

const TIMEOUT_MS = 1_000
/** The deadline, and the limit of 2 s for reading a body, end an attempt. Without them it would never end. */
const ENDS_WITHIN_MS = 60_000
const MEGABYTE = 1024 * 1024

type AtEnd = (dispose: () => void | Promise<void>) => void

/** A consumer that handles every connection as the test says. @returns its port */
async function serve(server: Server, atEnd: AtEnd = onTestFinished): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', socket => {
    sockets.add(socket.on('error', () => undefined).on('close', () => sockets.delete(socket)))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  atEnd(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

/** Answers the first bytes of every connection. */
function answering(answer: (socket: Socket) => void, atEnd: AtEnd = onTestFinished): Promise<number> {
  return serve(
    createTcpServer(socket => socket.once('data', () => answer(socket))),
    atEnd,
  )
}

async function post(
  url: string,
  resolve?: Lookup,
  atEnd: AtEnd = onTestFinished,
  timeoutMs = CONDITION_WITHIN_MS,
): Promise<{ outcome: PostOutcome; tookMs: number }> {
  const guard = createAddressGuard({ loopbackAndPrivateAllowed: true, allowedNetworks: [], ownPorts: [] })
  const poster = createPoster({ guard, timeoutMs, ...(resolve && { resolve }) })
  atEnd(() => poster.close())
  const begunAt = performance.now()
  const outcome = await poster.send({ url, headers: { 'Content-Type': 'application/json' }, body: Buffer.from('{}') })
  return { outcome, tookMs: performance.now() - begunAt }
}

/** Writes again and again for as long as the other side reads. */
function writeForEver(socket: Socket, bytes: string | Buffer): void {
  const more = () => {
    while (!socket.destroyed && socket.write(bytes));
  }
  socket.on('drain', more)
  more()
}

function drip(socket: Socket, text: string, everyMs = 10): void {
  let at = 0
  const timer = setInterval(() => socket.write(text[at++ % text.length]!), everyMs)
  socket.on('close', () => clearInterval(timer))
}

describe("the head of a consumer's response", () => {
  const heads: [string, (socket: Socket) => void][] = [
    ['drips for ever', socket => drip(socket, 'HTTP/1.1 200 OK\r\n')],
    [
      'drips headers for ever',
      socket => {
        socket.write('HTTP/1.1 200 OK\r\n')
        drip(socket, 'X: y\r\n', 5)
      },
    ],
    [
      'is a flood of headers',
      socket => {
        socket.write('HTTP/1.1 200 OK\r\n')
        writeForEver(socket, 'X-Flood: yes\r\n'.repeat(1_000))
      },
    ],
    [
      'is one header without an end',
      socket => {
        socket.write('HTTP/1.1 200 OK\r\nX: ')
        writeForEver(socket, 'x'.repeat(65_536))
      },
    ],
    ['is interim answers without end', socket => writeForEver(socket, 'HTTP/1.1 103 Early Hints\r\n\r\n')],
    ['is 100 Continue without end', socket => writeForEver(socket, 'HTTP/1.1 100 Continue\r\n\r\n')],
    ['is bytes without a line', socket => writeForEver(socket, Buffer.alloc(65_536))],
    ['is HTTP/2', socket => socket.write(Buffer.from('000012040000000000', 'hex'))],
    ['has two lengths', socket => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx')],
    ['never comes', () => undefined],
  ]

  test.concurrent.for(heads)('that %s fails the attempt, in bounded time', async ([, answer], context) => {
    const port = await answering(answer, context.onTestFinished)
    const { outcome, tookMs } = await post(`http://127.0.0.1:${port}/`, undefined, context.onTestFinished, TIMEOUT_MS)
    expect(outcome).toEqual({
      kind: 'failed',
      error: expect.stringMatching(/^(protocol_error|connection_reset|timeout)$/),
    })
    expect(tookMs).toBeLessThan(ENDS_WITHIN_MS)
  })
})

describe("the body of a consumer's response", () => {
  const bomb = gzipSync(Buffer.alloc(50 * MEGABYTE))
  const head = (more: string) => `HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n${more}\r\n`
  const bodies: [string, (socket: Socket) => void][] = [
    [
      'never ends',
      socket => {
        socket.write(head('Transfer-Encoding: chunked\r\n'))
        writeForEver(socket, `10000\r\n${'x'.repeat(65_536)}\r\n`)
      },
    ],
    [
      'drips',
      socket => {
        socket.write(head('Content-Length: 1000000\r\n'))
        drip(socket, 'x')
      },
    ],
    [
      'is a gzip bomb',
      socket => {
        socket.write(head(`Content-Encoding: gzip\r\nContent-Length: ${bomb.length}\r\n`))
        socket.write(bomb)
      },
    ],
    [
      'has a chunk extension without end',
      socket => {
        socket.write(`${head('Transfer-Encoding: chunked\r\n')}1;`)
        writeForEver(socket, 'x=y;'.repeat(10_000))
      },
    ],
    [
      'has trailers without end',
      socket => {
        socket.write(`${head('Transfer-Encoding: chunked\r\n')}1\r\nx\r\n0\r\n`)
        writeForEver(socket, 'X-Trailer: yes\r\n'.repeat(1_000))
      },
    ],
    ['is shorter than it says', socket => socket.end(`${head('Content-Length: 1000\r\n')}x`)],
    ['is not a chunk', socket => socket.end(`${head('Transfer-Encoding: chunked\r\n')}zz\r\n`)],
    [
      'is cut off by a reset',
      socket => socket.write(`${head('Content-Length: 1000\r\n')}x`, () => socket.resetAndDestroy()),
    ],
  ]

  test.concurrent.for(bodies)('that %s changes nothing about the status line', async ([, answer], context) => {
    const port = await answering(answer, context.onTestFinished)
    const { outcome, tookMs } = await post(`http://127.0.0.1:${port}/`, undefined, context.onTestFinished)
    expect(outcome).toMatchObject({ kind: 'answered', status: 200 })
    expect(Buffer.byteLength(outcome.kind === 'answered' ? (outcome.excerpt ?? '') : '')).toBeLessThanOrEqual(1_024)
    expect(tookMs).toBeLessThan(ENDS_WITHIN_MS)
  })

  test('is read up to 64 KiB', async () => {
    let written: () => number = () => 0
    const port = await answering(socket => {
      written = () => socket.bytesWritten
      socket.write(head('Transfer-Encoding: chunked\r\n'))
      writeForEver(socket, `10000\r\n${'x'.repeat(65_536)}\r\n`)
    })
    expect((await post(`http://127.0.0.1:${port}/`)).outcome).toMatchObject({ kind: 'answered', status: 200 })
    // The system's own buffers on loopback take megabytes.
    expect(written()).toBeLessThan(16 * MEGABYTE)
  })
})

test('a second response is not used as the response to the next attempt', async () => {
  await using quiet = await createReceiver()
  const guard = createAddressGuard({ loopbackAndPrivateAllowed: true, allowedNetworks: [], ownPorts: [] })
  const poster = createPoster({ guard, timeoutMs: CONDITION_WITHIN_MS })
  onTestFinished(() => poster.close())
  let requests = 0
  const port = await serve(
    createTcpServer(socket => {
      socket.on('data', () => {
        requests += 1
        const answer = (status: number) => `HTTP/1.1 ${status} X\r\nContent-Length: 0\r\n\r\n`
        socket.write(requests === 1 ? answer(500) + answer(200) + answer(200) : answer(503))
      })
    }),
  )
  const send = () => poster.send({ url: `http://127.0.0.1:${port}/`, headers: {}, body: Buffer.from('{}') })
  expect(await send()).toMatchObject({ kind: 'answered', status: 500 })
  expect(await send()).toMatchObject({ kind: 'answered', status: 503 })
  expect(quiet.requests).toHaveLength(0)
})

describe('a redirect', () => {
  test.each([301, 302, 303, 307, 308])('by %i is not followed', async status => {
    await using target = await createReceiver()
    await using receiver = await createReceiver()
    for (const to of [target.url, '/elsewhere', 'http://169.254.169.254/latest/meta-data', 'file:///etc/passwd']) {
      receiver.answerWith({ kind: 'redirect', to, status })
      expect((await post(receiver.url)).outcome).toMatchObject({ kind: 'answered', status })
    }
    expect(receiver.requests).toHaveLength(4)
    expect(target.requests).toHaveLength(0)
  })
})

describe('over TLS', () => {
  const good = createCertificate()
  const expired = createCertificate(-400)
  const future = createCertificate(10)
  const stranger = createCertificate()

  async function serveTls(options: TlsOptions): Promise<{ port: number; requests: () => number }> {
    let requests = 0
    const server = createTlsServer(options, socket => {
      socket
        .on('error', () => undefined)
        .once('data', () => {
          requests += 1
          socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
        })
    })
    server.on('tlsClientError', () => undefined)
    return { port: await serve(server), requests: () => requests }
  }

  const atLoopback: Lookup = async () => [{ address: '127.0.0.1', family: 4 }]
  const servers: [string, TlsOptions, string, 'answered' | 'tls_failed'][] = [
    ['valid, for this host and vouched for', good, 'localhost', 'answered'],
    ['for another host', good, 'consumer.test', 'tls_failed'],
    ['expired', expired, 'localhost', 'tls_failed'],
    ['not valid yet', future, 'localhost', 'tls_failed'],
    ['vouched for by nobody but itself', stranger, 'localhost', 'tls_failed'],
    [
      'good, but the protocol is TLS 1.1',
      { ...good, minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'ALL@SECLEVEL=0' },
      'localhost',
      'tls_failed',
    ],
    ['good, but only HTTP/2 is spoken', { ...good, ALPNProtocols: ['h2'] }, 'localhost', 'tls_failed'],
  ]

  test.each(servers)('a certificate that is %s', async (_, options, host, expected) => {
    onTestFinished(trust(good, expired, future))
    const { port, requests } = await serveTls(options)
    const { outcome } = await post(`https://${host}:${port}/`, atLoopback)
    if (expected === 'answered') expect(outcome).toMatchObject({ kind: 'answered', status: 200 })
    else expect(outcome).toEqual({ kind: 'failed', error: expected })
    expect(requests()).toBe(expected === 'answered' ? 1 : 0)
  })

  test('is checked even if the environment disables the check', async () => {
    process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
    onTestFinished(() => void delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'])
    const { port, requests } = await serveTls(stranger)
    expect((await post(`https://localhost:${port}/`, atLoopback)).outcome).toEqual({
      kind: 'failed',
      error: 'tls_failed',
    })
    expect(requests()).toBe(0)
  })

  test('a handshake that hangs ends at the deadline', async () => {
    const port = await serve(createTcpServer())
    const { outcome, tookMs } = await post(`https://127.0.0.1:${port}/`, undefined, onTestFinished, TIMEOUT_MS)
    expect(outcome).toEqual({ kind: 'failed', error: 'timeout' })
    expect(tookMs).toBeLessThan(ENDS_WITHIN_MS)
  })
})

test('forty host names whose look-up hangs do not delay a consumer whose name is known', async () => {
  let laterMs = 0
  const resolver = new Resolver({
    clock: {
      ...systemClock,
      steady: () => systemClock.steady() + laterMs,
      // Timers run slowly: 5 s become 100 s. A wait for the names that hang thus differs clearly from a busy machine.
      after: (delayMs, task) => systemClock.after(20 * delayMs, task),
    },
    lookup: hostname =>
      hostname.endsWith('.hangs.test') ? new Promise(() => {}) : Promise.resolve([{ address: '127.0.0.1', family: 4 }]),
  })
  await using harness = await WebhookHarness.open('sqlite', inject('postgresUrl'), {
    resolve: hostname => resolver.resolve(hostname),
    timeoutMs: 600_000,
  })
  await using receiver = await createReceiver()
  const friend = await harness.addInstance(`http://friend.test:${receiver.port}/`)
  await friend.receive()
  await receiver.waitFor(1)
  for (let hostile = 0; hostile < 8; hostile += 1) {
    const instance = await harness.addInstance('http://0.hangs.test/')
    for (let name = 0; name < 5; name += 1) {
      await harness.store.instances.setWebhookUrl(instance.id, `http://${hostile}-${name}.hangs.test/`)
      await instance.receive()
    }
  }
  // Longer than a DNS answer is fresh: the name is looked up again, together with those that hang.
  laterMs = 6_000
  await friend.receive()
  await receiver.waitFor(2)
})
