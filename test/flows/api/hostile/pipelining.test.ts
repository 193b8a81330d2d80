import { connect } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { until } from '../../../until.ts'
import { ApiHarness, type Created } from '../harness.ts'

/** `npm run test:hostile` includes the slow tests. */
const LONG = process.env['HOSTILE_REQUESTS'] !== undefined
const MAX_UNANSWERED = 64

let api: ApiHarness
let instance: Created
beforeAll(async () => {
  api = await ApiHarness.start()
  instance = await api.createConnected()
})
afterAll(() => api[Symbol.asyncDispose]())

function get(path: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`
}

function post(text: string, length = 0): string {
  const body = JSON.stringify({ to: '5511987654321', text }).padEnd(length)
  return (
    `POST /v1/messages/text HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${instance.token}\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  )
}

/** All responses until the server closes the connection, which the last request asks for. */
function exchange(bytes: string): Promise<string> {
  return new Promise(resolve => {
    let received = ''
    const socket = connect(api.port, '127.0.0.1').on('error', () => undefined)
    socket.setEncoding('latin1').on('data', text => {
      received += text
    })
    socket.once('close', () => resolve(received))
    socket.write(bytes)
  })
}

function statusesOf(received: string): number[] {
  return Array.from(received.matchAll(/HTTP\/1\.1 (\d{3}) /g), ([, status]) => Number(status))
}

const LAST = 'GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'

test('pipelined requests are answered completely and in their order', async () => {
  const requests = Array.from({ length: 15 }, (_, n) => [get('/openapi.json'), post(`text ${n}`), get('/nope')]).flat()
  const statuses = statusesOf(await exchange(requests.join('') + LAST))
  expect(statuses).toEqual([...Array.from({ length: 15 }, () => [200, 202, 404]).flat(), 200])
})

test('pipelined texts are accepted in their order, even with bodies larger than one read of the server', async () => {
  const begunAt = Date.now()
  const texts = Array.from({ length: 20 }, (_, n) => `in order ${begunAt} ${n}`)
  const statuses = statusesOf(await exchange(texts.map(text => post(text, 100_000)).join('') + LAST))
  expect(statuses).toEqual([...Array(20).fill(202), 200])
  const queued = await api.store.messages.listQueued(instance.id, 1_000)
  expect(queued.map(({ text }) => text).filter(text => text?.startsWith('in order'))).toEqual(texts)
})

test('a connection with more unanswered requests is closed, and others are served', async () => {
  const answered = statusesOf(await exchange(get('/openapi.json').repeat(3_000)))
  expect(answered.length).toBeLessThanOrEqual(MAX_UNANSWERED)
  expect((await api.call({ path: '/v1/instance', key: instance.token })).status).toBe(200)
})

test('no request of a closed connection is processed any more', async () => {
  const answered = () => api.logged.filter(({ msg, route }) => msg === 'request.answered' && route === '/v1/instance')
  const before = answered().length
  await exchange(get('/v1/instance').repeat(2_000))
  expect(answered().length - before).toBeLessThanOrEqual(MAX_UNANSWERED)
})

test.each(['HEAD /docs/js/scalar.js', 'HEAD /openapi.json', 'HEAD /docs/'])(
  '%s has a length and no body',
  async line => {
    const received = await exchange(`${line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    expect(received).toMatch(/content-length: \d{3,}\r\n/i)
    expect(received).toMatch(/\r\n\r\n$/)
  },
)

test('the script of the reference arrives complete', async () => {
  const { text, headers } = await api.call({ path: '/docs/js/scalar.js' })
  expect(text.length).toBeGreaterThan(1_000_000)
  expect(Buffer.byteLength(text)).toBe(Number(headers.get('content-length')))
})

test.runIf(LONG)('an answer that is never read is dropped with its connection', { timeout: 120_000 }, async () => {
  await using fresh = await ApiHarness.start()
  const socket = connect(fresh.port, '127.0.0.1').on('error', () => undefined)
  socket.pause()
  socket.write(get('/openapi.json').repeat(60))
  const open = () => new Promise<number>(resolve => fresh.server.server.getConnections((_, count) => resolve(count)))
  await until('the connection', async () => (await open()) >= 1)
  await until('its end', async () => (await open()) === 0, 60_000)
  socket.destroy()
})
