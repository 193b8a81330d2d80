/**
 * A consumer that counts requests. `/events` answers at once. `/dead` never answers and `/failing` answers 500;
 * requests to these two are not counted. `/incoming` answers at once, counts only incoming messages, and remembers
 * their IDs.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { monotonicMs } from '../harness/clock.ts'
import { serve } from '../harness/remote.ts'

const COUNT_WITHIN_MS = 180_000

let expected = 0
let arrivedAt: number[] = []
let arrivedIds: string[] = []
let complete = Promise.withResolvers<void>()

const server = createServer((request, response) => {
  if (request.url === '/incoming') return readIncoming(request, response)
  request.resume()
  if (request.url === '/dead') return
  if (request.url === '/failing') return request.on('end', () => response.writeHead(500).end())
  request.on('end', () => arrive(response))
})

function readIncoming(request: IncomingMessage, response: ServerResponse): void {
  const chunks: Buffer[] = []
  request.on('data', chunk => chunks.push(chunk))
  request.on('end', () => {
    if (request.headers['x-service-event'] !== 'message.received') return response.end()
    arrive(response)
    arrivedIds.push(JSON.parse(Buffer.concat(chunks).toString()).data.id)
  })
}

function arrive(response: ServerResponse): void {
  arrivedAt.push(monotonicMs())
  response.end()
  if (arrivedAt.length === expected) complete.resolve()
}
server.keepAliveTimeout = COUNT_WITHIN_MS

async function listen(): Promise<string> {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function expect(count: number): void {
  expected = count
  arrivedAt = []
  arrivedIds = []
  complete = Promise.withResolvers()
}

/**
 * The arrival time of each request, once the expected number has arrived: milliseconds on the clock that all processes
 * share.
 */
async function arrivals(): Promise<number[]> {
  const late = setTimeout(
    () => complete.reject(new Error(`Only ${arrivedAt.length} of ${expected} requests arrived.`)),
    COUNT_WITHIN_MS,
  )
  await complete.promise
  clearTimeout(late)
  return arrivedAt
}

/** Like `arrivals`, each with the ID of its message. */
async function incoming(): Promise<[string, number][]> {
  return (await arrivals()).map((at, index) => [arrivedIds[index]!, at])
}

/** The number of requests since `expect`. */
function count(): number {
  return arrivedAt.length
}

const methods = { listen, expect, arrivals, incoming, count }
export type ReceiverProcess = typeof methods
serve(methods)
