import { createServer, type RequestListener, type Server, type ServerOptions } from 'node:http'
import type { Socket } from 'node:net'

/** Requests of a connection whose answers are still to come. Nobody who waits for answers sends so many. */
const MAX_UNANSWERED = 64
/** A reader gets this long, and the time that the rest takes at the slowest rate, to read an answer. */
const READ_WITHIN_MS = 15_000
/** 16 KB/s. */
const SLOWEST_BYTES_PER_MS = 16

type Exchange = Parameters<RequestListener>

/**
 * An HTTP server that works on one request of a connection at a time, in the order they came: pipelined requests
 * (RFC 9112 §9.3.2) get no more of the service than a caller who waits for each answer. A connection with too many
 * unanswered requests is closed, and so is one that does not read its answer.
 */
export function createOneAtATimeServer(options: ServerOptions, handle: RequestListener): Server {
  const waitingBySocket = new WeakMap<Socket, Exchange[]>()

  function begin(waiting: Exchange[]): void {
    const [exchange] = waiting
    if (exchange === undefined) return
    const [{ socket }, response] = exchange
    if (socket.destroyed) return
    response.once('prefinish', () => closeUnlessRead(socket, response))
    response.once('close', () => {
      waiting.shift()
      // Other connections have their turn between two requests of this one.
      if (waiting.length > 0) setImmediate(begin, waiting)
    })
    handle(...exchange)
  }

  return createServer(options, (request, response) => {
    const { socket } = request
    const waiting = waitingBySocket.get(socket) ?? []
    if (waiting.length === MAX_UNANSWERED) {
      // Also frees what was parsed: Node reads requests as far as the bytes that have arrived go.
      socket.destroy()
      return
    }
    waitingBySocket.set(socket, waiting)
    waiting.push([request, response])
    if (waiting.length === 1) begin(waiting)
  })
}

/** How long a reader may take for an answer of so many bytes. */
export function readWithinMs(bytes: number): number {
  return READ_WITHIN_MS + bytes / SLOWEST_BYTES_PER_MS
}

/** The answer is complete; perhaps the reader is not. */
function closeUnlessRead(socket: Socket, response: Exchange[1]): void {
  if (socket.writableLength === 0) return
  const timer = setTimeout(() => socket.destroy(), readWithinMs(socket.writableLength))
  response.once('close', () => clearTimeout(timer))
}
