import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { createClientErrorHandler } from './raw-answers.ts'

/** A connection that records the written data. */
function createSocket(more: object = {}): Socket & { written: string } {
  const socket = new Duplex({
    read() {},
    write(chunk, _encoding, done) {
      Object.assign(socket, { written: socket.written + String(chunk) })
      done()
    },
  }) as unknown as Socket & { written: string }
  return Object.assign(socket, { written: '' }, more)
}

const answer = createClientErrorHandler(() => 'req_1')

describe('a request that Node cannot parse', () => {
  test.each([
    ['HPE_INVALID_METHOD', 400, 'invalid_request'],
    [undefined, 400, 'invalid_request'],
    ['HPE_HEADER_OVERFLOW', 431, 'headers_too_large'],
    ['ERR_HTTP_REQUEST_TIMEOUT', 408, 'request_timeout'],
    ['HPE_CHUNK_EXTENSIONS_OVERFLOW', 413, 'payload_too_large'],
  ])('%s is answered with %i %s and a complete error body', (code, status, ours) => {
    const socket = createSocket()
    answer(Object.assign(new Error('x'), code === undefined ? {} : { code }), socket)
    const [head = '', body = ''] = socket.written.split('\r\n\r\n')
    expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} \\w`))
    expect(head).toContain('x-request-id: req_1')
    expect(head).toContain('connection: close')
    expect(head).toContain(`content-length: ${Buffer.byteLength(body)}`)
    expect(JSON.parse(body)).toMatchObject({ error: { code: ours } })
    expect(socket.writableEnded).toBe(true)
  })

  test('gets no answer if an answer has begun or was already sent, or if the caller has disconnected', () => {
    const answering = createSocket({ _httpMessage: { headersSent: true } })
    answer(new Error('x'), answering)
    expect([answering.written, answering.destroyed]).toEqual(['', true])
    const answered = createSocket({ _httpMessage: null, parser: { incoming: { complete: false } } })
    answer(new Error('the rest of the body'), answered)
    expect([answered.written, answered.destroyed]).toEqual(['', true])
    const gone = createSocket()
    answer(Object.assign(new Error('x'), { code: 'ECONNRESET' }), gone)
    expect([gone.written, gone.destroyed]).toEqual(['', true])
  })
})
