import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerOptions } from 'node:http'
import type { Socket } from 'node:net'
import { EventLoopBudget } from '../../../kit/event-loop-budget.ts'

/** Unanswered requests per connection. */
const MAX_UNANSWERED = 64
/** The time that every caller has to read an answer, in addition to the time for its size at the slowest rate. */
const READ_WITHIN_MS = 15_000
/** 16 KB/s. */
const SLOWEST_BYTES_PER_MS = 16

type Exchange = Parameters<RequestListener>

interface Connection {
  /** The exchanges without a complete answer, in order. */
  waiting: Exchange[]
  /** The newest request, until it has arrived completely and is answered. */
  newest: IncomingMessage | null
}

const connections = new WeakMap<Socket, Connection>()

/**
 * An HTTP server that handles the requests of a connection one at a time and in order, so that pipelining (RFC 9112
 * §9.3.2) gives no advantage. It closes connections with too many unanswered requests and those that do not read answers.
 * Requests of unknown callers share a few starts per turn of the event loop, so that a thousand of them at once do not delay
 * a known caller.
 */
export function createOneAtATimeServer(
  options: ServerOptions,
  knownCallers: { holderOf(request: IncomingMessage): string | null },
  handle: RequestListener,
): Server {
  const unknownCallers = new EventLoopBudget()

  function begin(connection: Connection): void {
    const [exchange] = connection.waiting
    if (exchange === undefined) return
    const [request, response] = exchange
    const { socket } = request
    if (socket.destroyed) return
    // Closes the connection if the caller does not read the complete answer in time.
    response.once('prefinish', () => {
      if (socket.writableLength === 0) return
      const timer = setTimeout(() => socket.destroy(), readWithinMs(socket.writableLength))
      response.once('close', () => clearTimeout(timer))
    })
    response.once('close', () => {
      connection.waiting.shift()
      if (connection.newest === request && request.complete) connection.newest = null
      // Let other connections proceed between two requests of this one.
      if (connection.waiting.length > 0) setImmediate(begin, connection)
    })
    if (knownCallers.holderOf(request) !== null) {
      handle(request, response)
      return
    }
    // Node would read the rest of a refused body, which may be large.
    response.once('finish', () => request.complete || socket.destroy())
    void unknownCallers.take().then(() => socket.destroyed || handle(request, response))
  }

  return createServer(options, (request, response) => {
    const { socket } = request
    const connection = connections.get(socket) ?? { waiting: [], newest: null }
    if (connection.waiting.length === MAX_UNANSWERED) {
      socket.destroy()
      stopParsing(socket)
      return
    }
    connections.set(socket, connection)
    connection.newest = request
    connection.waiting.push([request, response])
    if (connection.waiting.length === 1) begin(connection)
  })
}

/**
 * Whether an error for the request that the parser refused can be written next. It cannot if an earlier request is
 * unanswered or this answer has begun: a proxy that shares the connection would mistake the error for that answer.
 */
export function isNextAnswerFree(socket: Socket): boolean {
  const { waiting, newest } = connections.get(socket) ?? { waiting: [], newest: null }
  // The refused request is either a later one than `newest`, or `newest` itself with a malformed or late body.
  if (newest === null || newest.complete) return waiting.length === 0
  return waiting.length === 1 && !waiting[0]![1].headersSent
}

/**
 * Stops Node from parsing the rest of what it has read: one read can contain 2,500 requests, and Node would create an error
 * with a stack for each of them, which takes tens of milliseconds. To the parser -1 is an error (llhttp's
 * `on_headers_complete`). Node does not document `parser`. If it is missing, only this saving is lost.
 */
function stopParsing(socket: Socket & { parser?: { onIncoming: () => number } | null }): void {
  if (socket.parser) socket.parser.onIncoming = () => -1
}

/** How long a caller may take to read an answer, in milliseconds. */
export function readWithinMs(bytes: number): number {
  return READ_WITHIN_MS + bytes / SLOWEST_BYTES_PER_MS
}
