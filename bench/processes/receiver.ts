/** A consumer that counts requests: `/events` answers at once, `/dead` never answers. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { monotonicMs } from '../harness/clock.ts'
import { serve } from '../harness/remote.ts'

const COUNT_WITHIN_MS = 180_000

let expected = 0
let arrivedAt: number[] = []
let complete = Promise.withResolvers<void>()

const server = createServer((request, response) => {
  request.resume()
  if (request.url === '/dead') return
  request.on('end', () => {
    arrivedAt.push(monotonicMs())
    response.end()
    if (arrivedAt.length === expected) complete.resolve()
  })
})
server.keepAliveTimeout = COUNT_WITHIN_MS

async function listen(): Promise<string> {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function expect(count: number): void {
  expected = count
  arrivedAt = []
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

/** The number of requests since `expect`. */
function count(): number {
  return arrivedAt.length
}

const methods = { listen, expect, arrivals, count }
export type ReceiverProcess = typeof methods
serve(methods)
