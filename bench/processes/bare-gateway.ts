/**
 * A gateway without guarantees: bare Fastify, bare Baileys and Node's HTTP client in one process. It answers a call before the
 * text is sent, and posts incoming messages unsigned. Nothing is recorded.
 */
import { Agent, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import Fastify from 'fastify'
import { link, linked, open, sendText } from '../harness/bare-sockets.ts'
import { serve } from '../harness/remote.ts'

const server = Fastify()
const agent = new Agent({ keepAlive: true })

/** The token of an account is its index, in the order of linking. */
server.post('/v1/messages/text', (call, reply) => {
  const { to, text } = call.body as { to: string; text: string }
  const socket = open[Number(call.headers.authorization?.slice('Bearer '.length))]
  if (!socket || !to || !text) throw new Error('token, to and text are needed')
  void sendText(socket, to, text)
  return reply.code(202).send({ data: { status: 'queued' } })
})

async function listen(): Promise<string> {
  await server.listen({ host: '127.0.0.1', port: 0 })
  return `http://127.0.0.1:${(server.server.address() as AddressInfo).port}`
}

/** From now on, posts the messages that the linked accounts receive. */
function postTo(url: string): void {
  for (const socket of open) {
    socket.ev.on('messages.upsert', ({ messages }) => {
      for (const { key, message } of messages) {
        if (!key.fromMe) post(url, { id: key.id, from: key.remoteJid, text: message?.conversation })
      }
    })
  }
}

function post(url: string, data: object): void {
  const body = JSON.stringify({ event: 'message.received', data })
  const headers = {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    'x-service-event': 'message.received',
  }
  request(url, { agent, method: 'POST', headers }, response => response.resume()).end(body)
}

const methods = { link, linked, listen, postTo }
export type BareGateway = typeof methods
serve(methods)
