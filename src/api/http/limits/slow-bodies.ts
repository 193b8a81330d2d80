import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** The time that the rest of a refused body may take. */
const REST_WITHIN_MS = 15_000

const slow = new WeakSet<Socket>()

/**
 * Allows the body of this request more time than other bodies: its reader limits the time. If the request is answered
 * early, the rest of the body is read and discarded, so that the connection can be used again.
 */
export function mayTakeLong(request: IncomingMessage, response: ServerResponse): void {
  const { socket } = request
  slow.add(socket)
  response.once('finish', () => {
    if (request.complete) return
    const timer = setTimeout(() => request.complete || socket.destroy(), REST_WITHIN_MS)
    request.once('close', () => clearTimeout(timer))
    request.resume()
  })
  response.once('close', () => slow.delete(socket))
}

/**
 * Whether the request on this connection may take longer. Node reports each late request at most once: after an ignored
 * report only the body's reader limits the time.
 */
export function maySocketTakeLong(socket: Socket): boolean {
  return slow.has(socket)
}
