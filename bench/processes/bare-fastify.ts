/** The cost of accepting a message without guarantees: a Fastify route that parses the body and answers 202. */
import { randomUUID } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import Fastify from 'fastify'
import { serve } from '../harness/remote.ts'

const server = Fastify()

server.post('/v1/messages/text', (request, reply) => {
  const { to, text } = request.body as { to: string; text: string }
  if (!to || !text) throw new Error('to and text are needed')
  return reply.code(202).send({ data: { id: `msg_${randomUUID()}`, status: 'queued' } })
})

async function listen(): Promise<string> {
  await server.listen({ host: '127.0.0.1', port: 0 })
  return `http://127.0.0.1:${(server.server.address() as AddressInfo).port}`
}

const methods = { listen }
export type BareFastify = typeof methods
serve(methods)
