import { type IncomingMessage, type Server, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { Refusal } from '../../domain/refusal.ts'
import { errorBody } from './error-handler.ts'
import { isNextAnswerFree } from './limits/one-request-per-connection.ts'
import { maySocketTakeLong } from './limits/slow-bodies.ts'
import { requestIdOf } from './requests.ts'
import { SECURITY_HEADERS } from './security-headers.ts'

/** How long a connection may stay open after the answer to CONNECT. Less than a stopping server waits for open requests. */
const CLOSE_WITHIN_MS = 2_000

/** Node's codes for requests that it cannot parse. All others are answered with 400. */
const NODE_CODES: Readonly<Record<string, () => Refusal>> = {
  HPE_HEADER_OVERFLOW: () => new Refusal('headers_too_large'),
  HPE_CHUNK_EXTENSIONS_OVERFLOW: () => new Refusal('payload_too_large', 'The chunk extensions are too large.'),
  ERR_HTTP_REQUEST_TIMEOUT: () => new Refusal('request_timeout'),
}

/** If Node's parser refuses a request, answers it with an error body and closes the connection. */
export function answerClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && maySocketTakeLong(socket)) return
  const refusal = NODE_CODES[error.code ?? '']?.() ?? new Refusal('invalid_request', 'The request is not valid HTTP.')
  if (error.code === 'ECONNRESET' || !socket.writable || !isNextAnswerFree(socket)) socket.destroy()
  else answerRaw(socket, refusal)
}

/** Handles requests that Node would answer itself or not at all. */
export function answerOddRequests(server: Server): void {
  // Unknown expectations may be ignored (RFC 9110 §10.1.1).
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
  server.on('connect', (_request: IncomingMessage, socket: Socket) => {
    socket.on('error', () => socket.destroy())
    if (!isNextAnswerFree(socket)) {
      socket.destroy()
      return
    }
    answerRaw(socket, new Refusal('method_not_allowed', 'This is not a proxy.'), { allow: '' })
    closeSoon(socket)
  })
}

/**
 * Closes a connection that Node no longer manages, after its last answer: when the caller has closed its half, or after
 * `CLOSE_WITHIN_MS`. Closing it at once, with unread data, could destroy the answer on its way.
 */
function closeSoon(socket: Socket): void {
  socket.resume()
  const timer = setTimeout(() => socket.destroy(), CLOSE_WITHIN_MS)
  socket.once('close', () => clearTimeout(timer))
}

function answerRaw(socket: Duplex, refusal: Refusal, more: Record<string, string> = {}): void {
  const requestId = requestIdOf({ headers: {} })
  const body = errorBody(refusal, requestId)
  const headers = {
    ...SECURITY_HEADERS,
    ...more,
    'x-request-id': requestId,
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(`HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}\r\n${lines.join('')}\r\n${body}`)
}
