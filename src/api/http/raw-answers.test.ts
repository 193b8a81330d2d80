import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createOneAtATimeServer } from './limits/one-request-per-connection.ts'
import { answerClientError } from './raw-answers.ts'

/** A connection that records the written data. */
function createSocket(): Socket & { written: string } {
  const socket = new Duplex({
    read() {},
    write(chunk, _encoding, done) {
      Object.assign(socket, { written: socket.written + String(chunk) })
      done()
    },
  }) as unknown as Socket & { written: string }
  return Object.assign(socket, { written: '' })
}

/** A connection to a server with this handler, and everything that it has received by its end. */
async function connectTo(handle: RequestListener): Promise<{ socket: Socket; received: Promise<string> }> {
  const server = createOneAtATimeServer({}, { holderOf: () => 'known' }, handle)
    .on('clientError', answerClientError)
    .listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => undefined)
  const chunks: string[] = []
  socket.setEncoding('latin1').on('data', chunk => chunks.push(String(chunk)))
  return { socket, received: once(socket, 'close').then(() => chunks.join('')) }
}

const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'
const POST = 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n'
const MALFORMED = 'zz\r\n\r\n'

describe('a request that Node cannot parse', () => {
  test.each([
    ['HPE_INVALID_METHOD', 400, 'invalid_request'],
    [undefined, 400, 'invalid_request'],
    ['HPE_HEADER_OVERFLOW', 431, 'headers_too_large'],
    ['ERR_HTTP_REQUEST_TIMEOUT', 408, 'request_timeout'],
    ['HPE_CHUNK_EXTENSIONS_OVERFLOW', 413, 'payload_too_large'],
  ])('%s is answered with %i %s and a complete error body', (code, status, ours) => {
    const socket = createSocket()
    answerClientError(Object.assign(new Error('x'), code === undefined ? {} : { code }), socket)
    const [head = '', body = ''] = socket.written.split('\r\n\r\n')
    expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} \\w`))
    const [, requestId] = /x-request-id: (req_[0-9a-f]{20})/.exec(head) ?? []
    expect(requestId).toBeDefined()
    expect(head).toContain('connection: close')
    expect(head).toContain(`content-length: ${Buffer.byteLength(body)}`)
    expect(JSON.parse(body)).toMatchObject({ error: { code: ours, requestId } })
    expect(socket.writableEnded).toBe(true)
  })

  test('a caller that has disconnected gets no answer', () => {
    const gone = createSocket()
    answerClientError(Object.assign(new Error('x'), { code: 'ECONNRESET' }), gone)
    expect([gone.written, gone.destroyed]).toEqual(['', true])
  })

  test('a malformed body is answered with 400', async () => {
    const { socket, received } = await connectTo(() => undefined)
    socket.write(POST + MALFORMED)
    expect(await received).toMatch(/^HTTP\/1\.1 400 /)
  })

  test('a malformed request after an answered one is answered with 400', async () => {
    const { socket, received } = await connectTo((_request, response) => response.end('first'))
    socket.write(GET)
    await once(socket, 'data')
    socket.write(MALFORMED)
    expect((await received).match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 400'])
  })

  test('nothing is written into an answer that has begun', async () => {
    const { socket, received } = await connectTo((_request, response) => response.write('first'))
    socket.write(POST)
    await once(socket, 'data')
    socket.write(MALFORMED)
    expect(await received).toMatch(/^HTTP\/1\.1 200 [\s\S]*first\r\n$/)
  })

  test('a request that was already answered gets no second answer for its malformed body', async () => {
    const { socket, received } = await connectTo((_request, response) => response.end('first'))
    socket.write(POST)
    await once(socket, 'data')
    socket.write(MALFORMED)
    expect((await received).match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200'])
  })

  test('while an earlier request is unanswered, a malformed request gets no answer', async () => {
    const { socket, received } = await connectTo(() => undefined)
    socket.write(GET + MALFORMED)
    expect(await received).toBe('')
  })
})
