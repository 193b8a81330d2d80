import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CONDITION_WITHIN_MS, onThisMachine } from '../../../deadlines.ts'
import { until } from '../../../until.ts'
import { ApiHarness, type Created } from '../harness.ts'

/** `npm run test:hostile` includes the slow tests. */
const LONG = process.env['HOSTILE_REQUESTS'] !== undefined
/** A request that gets 200 if it is handled. */
const SMUGGLED = 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'

let api: ApiHarness
let instance: Created
beforeAll(async () => {
  api = await ApiHarness.start()
  instance = await api.createConnected()
})
afterAll(() => api[Symbol.asyncDispose]())

/** The responses to these bytes until the server closes the connection. */
function exchange(bytes: string | Buffer): Promise<{ statuses: number[]; closed: boolean }> {
  return new Promise(resolve => {
    const socket = connect(api.port, '127.0.0.1')
    let received = ''
    let closed = false
    const end = () => {
      socket.destroy()
      resolve({ statuses: [...received.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status)), closed })
    }
    socket.setEncoding('latin1').on('data', text => {
      received += text
    })
    socket
      .on('error', () => undefined)
      .on('close', () => {
        closed = true
        end()
      })
    socket.setTimeout(CONDITION_WITHIN_MS, end)
    socket.write(bytes)
  })
}

/** The requests that reached a route, according to the log. */
function routed(): number {
  return api.logged.filter(({ msg }) => msg === 'request.answered').length
}

describe('a request hidden in another', () => {
  const head = 'POST /v1/messages/text HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'
  const chunked = `${head}Transfer-Encoding: chunked\r\n\r\n`
  const ambiguous: [string, string][] = [
    ['a length beside chunks', `${head}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${SMUGGLED}`],
    ['chunks beside a length', `${head}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n${SMUGGLED}`],
    ['two lengths', `${head}Content-Length: 0\r\nContent-Length: 44\r\n\r\n${SMUGGLED}`],
    ['a list of lengths', `${head}Content-Length: 0, 44\r\n\r\n${SMUGGLED}`],
    ['a signed length', `${head}Content-Length: +0\r\n\r\n${SMUGGLED}`],
    ['a hexadecimal length', `${head}Content-Length: 0x0\r\n\r\n${SMUGGLED}`],
    ['a length beyond 64 bits', `${head}Content-Length: 18446744073709551616\r\n\r\n${SMUGGLED}`],
    ['a space before the colon', `${head}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n${SMUGGLED}`],
    ['an encoding that is almost chunked', `${head}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${SMUGGLED}`],
    ['chunked, and then something else', `${head}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n${SMUGGLED}`],
    ['chunked behind a vertical tab', `${head}Transfer-Encoding: \u000bchunked\r\n\r\n0\r\n\r\n${SMUGGLED}`],
    ['a header that is folded', `${head}Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n${SMUGGLED}`],
    ['a bare line feed in the head', `${head}X: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${SMUGGLED}`],
    ['a bare carriage return in the head', `${head}X: y\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${SMUGGLED}`],
    ['a chunk size beyond 64 bits', `${chunked}10000000000000000\r\n${SMUGGLED}`],
    ['a negative chunk size', `${chunked}-1\r\n${SMUGGLED}`],
    ['a chunk longer than it says', `${chunked}1\r\nxx\r\n0\r\n\r\n${SMUGGLED}`],
    ['a line feed in a chunk extension', `${chunked}0;x\n\r\n${SMUGGLED}`],
    ['U+0000 in a header', `${head}X: \u0000\r\nContent-Length: 0\r\n\r\n${SMUGGLED}`],
  ]

  test.each(ambiguous)('by %s is never answered, and the connection is closed', async (_, bytes) => {
    const before = routed()
    const { statuses, closed } = await exchange(bytes)
    expect(closed).toBe(true)
    expect(statuses.length).toBeLessThanOrEqual(1)
    for (const status of statuses) expect([400, 401, 413, 501]).toContain(status)
    expect(routed() - before).toBeLessThanOrEqual(1)
  })

  test('is a separate request once the first one has ended', async () => {
    const before = routed()
    const last = SMUGGLED.replace('Host: x', 'Host: x\r\nConnection: close')
    const { statuses } = await exchange(`GET /v1/instance HTTP/1.1\r\nHost: x\r\n\r\n${last}`)
    expect(statuses).toEqual([401, 200])
    expect(routed() - before).toBe(2)
  })
})

describe('a slow caller', () => {
  const request = (more: string) => `GET /healthz HTTP/1.1\r\nHost: x\r\n${more}`

  test('a thousand silent connections delay nobody', async () => {
    const sockets = Array.from({ length: 1_000 }, () => connect(api.port, '127.0.0.1').on('error', () => undefined))
    await Promise.all(sockets.map(socket => new Promise(resolve => socket.once('connect', resolve))))
    for (const socket of sockets) socket.write('POST /v1/messages/text HTTP/1.1\r\nHost: x\r\nX-Slow: ')
    const begunAt = performance.now()
    expect((await api.call({ path: '/healthz' })).status).toBe(200)
    expect((await api.send(instance, { to: '5511987654321', text: 'x' })).status).toBe(202)
    // Before the silent connections are cut off, after 15 s.
    expect(performance.now() - begunAt).toBeLessThan(12_000)
    for (const socket of sockets) socket.destroy()
  })

  test.runIf(LONG)('slow headers are cut off after 15 s, a slow body after 30 s', async () => {
    const drip = async (start: string, forMs: number) => {
      const socket = connect(api.port, '127.0.0.1')
      const begunAt = performance.now()
      let received = ''
      socket.setEncoding('latin1').on('data', text => {
        received += text
      })
      socket.on('error', () => undefined)
      const closed = new Promise<number>(resolve => socket.once('close', () => resolve(performance.now() - begunAt)))
      socket.write(start)
      const timer = setInterval(() => socket.write('x'), 500)
      const tookMs = await Promise.race([closed, sleep(forMs, Number.POSITIVE_INFINITY)])
      clearInterval(timer)
      socket.destroy()
      return { tookMs, received }
    }
    const body =
      `POST /v1/messages/text HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${instance.token}\r\n` +
      'Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n{'
    const [slowHead, slowBody] = await Promise.all([drip(request('X: '), 30_000), drip(body, 60_000)])
    expect(slowHead.tookMs).toBeLessThan(onThisMachine(20_000))
    expect(slowHead.received).toContain('"request_timeout"')
    expect(slowBody.tookMs).toBeLessThan(onThisMachine(36_000))
  })
})

describe('CONNECT', () => {
  const CONNECT = 'CONNECT a:1 HTTP/1.1\r\nHost: x\r\n\r\n'

  test.each([
    ['nothing more', ''],
    ['bytes for the tunnel', 'x'.repeat(200_000)],
  ])('with %s gets 405, and the connection is closed even if the caller keeps its half open', async (_, more) => {
    await using own = await ApiHarness.start()
    const socket = connect({ port: own.port, host: '127.0.0.1', allowHalfOpen: true }).on('error', () => undefined)
    let received = ''
    socket.setEncoding('latin1').on('data', text => {
      received += text
    })
    const ended = once(socket, 'end')
    socket.write(CONNECT + more)
    await ended
    const count = promisify(own.server.server.getConnections.bind(own.server.server))
    await until('the end of the connection', async () => (await count()) === 0)
    socket.destroy()
    expect(received).toMatch(/^HTTP\/1\.1 405 [\s\S]*"method_not_allowed"/)
  })

  test('gets no answer in place of that of an earlier request', async () => {
    const { statuses, closed } = await exchange(`GET /v1/instance HTTP/1.1\r\nHost: x\r\n\r\n${CONNECT}`)
    expect([statuses, closed]).toEqual([[], true])
  })
})
