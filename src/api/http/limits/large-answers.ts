import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { EventLoopBudget } from '../../../kit/event-loop-budget.ts'
import { readWithinMs } from './one-request-per-connection.ts'

/** Copying more than this into a socket at once would block other callers. */
const SLICE_BYTES = 65_536

const turns = new EventLoopBudget(1)

/**
 * Sends bytes that all answers share in memory. Large answers are sent in slices, one slice per turn of the event loop for
 * all of them together, so that they delay only one another.
 */
export function sendShared(request: FastifyRequest, reply: FastifyReply, bytes: Buffer): FastifyReply {
  if (bytes.length <= SLICE_BYTES) return reply.send(bytes)
  reply.header('content-length', bytes.length)
  if (request.method === 'HEAD') return reply.send()
  const body = Readable.from(slices(bytes))
  const late = setTimeout(() => body.destroy(), readWithinMs(bytes.length))
  body.once('close', () => clearTimeout(late))
  return reply.send(body)
}

async function* slices(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let from = 0; from < bytes.length; from += SLICE_BYTES) {
    await turns.take()
    yield bytes.subarray(from, from + SLICE_BYTES)
  }
}
