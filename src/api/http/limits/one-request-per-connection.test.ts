import { once } from 'node:events'
import type { RequestListener, Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterEach, expect, test, vi } from 'vitest'
import { CONDITION_WITHIN_MS } from '../../../../test/deadlines.ts'
import { createOneAtATimeServer } from './one-request-per-connection.ts'

const sockets: Socket[] = []
let server: Server
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
  server.close()
})

/** Requests for `/known` come from a known caller. */
async function listen(handle: RequestListener): Promise<void> {
  server = createOneAtATimeServer({}, { holderOf: request => (request.url === '/known' ? 'known' : null) }, handle)
  await once(server.listen(0, '127.0.0.1'), 'listening')
}

function open(): Socket {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => undefined)
  sockets.push(socket)
  return socket
}

test('hundreds of requests of unknown callers at once hardly delay a known caller', async () => {
  const handled: string[] = []
  await listen((request, response) => {
    handled.push(request.url ?? '')
    response.end()
  })
  let accepted = 0
  server.on('connection', () => {
    accepted += 1
  })
  const strangers = Array.from({ length: 300 }, open)
  const known = open()
  await vi.waitUntil(() => accepted === 301, CONDITION_WITHIN_MS)

  for (const [n, socket] of strangers.entries()) socket.write(`GET /${n} HTTP/1.1\r\nHost: x\r\n\r\n`)
  known.write('GET /known HTTP/1.1\r\nHost: x\r\n\r\n')
  await Promise.all(sockets.map(socket => once(socket, 'data')))

  expect(handled.indexOf('/known')).toBeLessThan(50)
  expect(new Set(handled).size).toBe(301)
})

test('the remaining bytes of a closed connection are not parsed', async () => {
  let parsed = 0
  await listen(() => undefined)
  server.on('request', () => {
    parsed += 1
  })
  const socket = open()
  const closed = once(socket, 'close')
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(2_000))
  await closed
  expect(parsed).toBe(65)
})

test('a connection that is closed with unanswered requests does not affect the next connection', async () => {
  await listen((_request, response) => response.end('answered'))
  for (let n = 0; n < 20; n += 1) {
    const socket = open()
    const closed = once(socket, 'close')
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(2_000))
    await closed
  }
  const socket = open()
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  const [answer] = await once(socket, 'data')
  expect(String(answer)).toMatch(/^HTTP\/1\.1 200 OK\r\n.*answered$/s)
})
