import { createServer as createHttpServer, type Server as HttpServer } from 'node:http'
import { createServer, type Server } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, expect, test, vi } from 'vitest'
import { type WebSocket, WebSocketServer } from 'ws'
import { until } from '../../until.ts'
import { WhatsappHarness } from './harness.ts'

/** Servers at WhatsApp's address that are broken or hostile; docs/whatsapp-situations.md lists them. */

const FIRST_WORD_WITHIN_MS = 20_000
const HANDSHAKE_WITHIN_MS = 60_000
/** The header of a frame of 16 MiB. */
const LONG_FRAME = Buffer.of(0xff, 0xff, 0xff)

/** More than Linux holds for a connection that nobody reads: up to 4 MiB at the sender, and a part of that at the receiver. */
const SOCKET_BUFFERS_BYTES = 8 * 1_048_576

afterEach(() => vi.restoreAllMocks())

/** Shortens timers of exactly `hurriedMs` to half a second. */
function hurry(hurriedMs: number): void {
  const later = globalThis.setTimeout
  vi.spyOn(globalThis, 'setTimeout').mockImplementation(((work: () => void, delayMs?: number) =>
    later(work, delayMs === hurriedMs ? 500 : delayMs)) as typeof setTimeout)
}

async function portOf(server: Server): Promise<number> {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as { port: number }).port
}

/** Starts linking at this port. @returns the connection once its reason contains `why` */
async function askAt(harness: WhatsappHarness, port: number, why: string) {
  const id = await harness.createInstance()
  await harness.connect(id, { scan: false, network: { kind: 'simulated', url: `ws://127.0.0.1:${port}/ws/chat` } })
  await harness.store.connections.requestConnect(id, null)
  return until(`the reason "${why}"`, async () => {
    const record = await harness.store.connections.find(id)
    return record?.reason.includes(why) && record
  })
}

test("a server that does not listen is reported with the system's error", async () => {
  await using harness = await WhatsappHarness.open()
  const server = createServer()
  const port = await portOf(server)
  await new Promise(resolve => server.close(resolve))
  await askAt(harness, port, 'WhatsApp could not be reached (ECONNREFUSED). Trying again in ')
  // The line follows the row.
  const line = 'WhatsApp could not be reached (ECONNREFUSED). Trying again in 1 s.'
  await until('the log line', async () => harness.log.join().includes(line))
})

test.each([
  ['to the HTTP request', false],
  ['in the WebSocket', true],
])('a server that says nothing %s is given up after 20 s', async (_, upgrades) => {
  hurry(FIRST_WORD_WITHIN_MS)
  await using harness = await WhatsappHarness.open()
  const server = upgrades ? createHttpServer() : createServer()
  if (upgrades) new WebSocketServer({ server: server as HttpServer })
  await askAt(harness, await portOf(server), 'WhatsApp did not answer in time. Trying again')
  server.close()
})

test.each([
  ['an HTTP header', 0],
  ['a frame', 1],
])('a server that drips %s is given up, however long it continues', async (_, drips) => {
  hurry(HANDSHAKE_WITHIN_MS)
  await using harness = await WhatsappHarness.open()
  const sockets = new WebSocketServer({ noServer: true })
  const server = drips === 0 ? createServer() : createHttpServer()
  server.on('connection', async socket => {
    socket.on('error', () => undefined)
    if (drips > 0) return
    socket.write('HTTP/1.1 101 Switching Protocols\r\nX: ')
    for (; !socket.destroyed; await sleep(50)) socket.write('x')
  })
  server.on('upgrade', (request, socket, head) => {
    sockets.handleUpgrade(request, socket, head, async client => {
      client.send(LONG_FRAME)
      for (; client.readyState === client.OPEN; await sleep(50)) client.send(Buffer.of(0))
    })
  })
  await askAt(harness, await portOf(server), 'WhatsApp did not answer in time. Trying again')
  server.close()
})

test('a server that floods the handshake is given up after its first few packets', async () => {
  await using harness = await WhatsappHarness.open()
  const packet = Buffer.alloc(1_024)
  let sent = 0
  const flood = async (client: WebSocket) => {
    client.send(LONG_FRAME)
    for (; client.readyState === client.OPEN; sent += packet.length) {
      await new Promise(resolve => client.send(packet, resolve))
    }
  }
  const http = createHttpServer()
  new WebSocketServer({ server: http }).on('connection', flood)
  await askAt(harness, await portOf(http), 'WhatsApp ended the connection without saying why. Trying again')
  expect(sent).toBeLessThan(SOCKET_BUFFERS_BYTES + 1_048_576)
  http.close()
})

test('a frame that cannot be decrypted ends the socket, and the next one works', async () => {
  await using harness = await WhatsappHarness.open()
  const { id } = await harness.link()
  const sockets = harness.line.sockets
  harness.line.inject(Buffer.from([0, 0, 32, ...Buffer.alloc(32)]))
  expect((await harness.reaches(id, 'reconnecting')).reason).toContain('without saying why')
  await harness.reaches(id, 'connected')
  expect(harness.line.sockets).toBe(sockets)
  const { id: message } = await harness.accept(id, '5511987654321', 'after the noise')
  await harness.becomes(id, message, 'read')
})
