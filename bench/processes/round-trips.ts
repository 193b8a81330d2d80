/**
 * Posts texts and receives their events. A fixed number of texts is on its way: posted, and not yet reported as read. The next
 * one is posted when an event reports one of them as read.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Caller, requestBytes } from '../harness/caller.ts'
import { serve } from '../harness/remote.ts'
import type { Target } from './load.ts'

const IDLE_SOCKET_MS = 180_000

export interface Trips extends Target {
  connections: number
  /** The number of texts on their way. */
  window: number
}

/** Texts posted, and events by kind, since `begin`. */
export interface TripCounts {
  posted: number
  sent: number
  delivered: number
  read: number
}

let counts: TripCounts = { posted: 0, sent: 0, delivered: 0, read: 0 }
let callers: Caller[] = []
let window = 0
let complete = Promise.withResolvers<void>()

const server = createServer((request, response) => {
  request.resume()
  request.on('end', () => {
    response.end()
    arrive(String(request.headers['x-service-event']))
  })
})
server.keepAliveTimeout = IDLE_SOCKET_MS

function arrive(event: string): void {
  const kind = event.slice('message.'.length)
  if (kind === 'failed') complete.reject(new Error('A text failed.'))
  if (kind !== 'sent' && kind !== 'delivered' && kind !== 'read') return
  counts[kind] += 1
  if (kind !== 'read') return
  for (const caller of callers) caller.wake()
  // Each has its turn at being first: the server closes a connection that is idle for long.
  callers = [...callers.slice(1), ...callers.slice(0, 1)]
  // Events of one text are in order, so `read` is the last.
  if (window === 0 && counts.read === counts.posted) complete.resolve()
}

async function listen(): Promise<string> {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

function begin(trips: Trips): void {
  const requests = trips.requests.map(request => requestBytes(trips.url, request))
  counts = { posted: 0, sent: 0, delivered: 0, read: 0 }
  window = trips.window
  complete = Promise.withResolvers()
  // `end` reports the failure.
  complete.promise.catch(() => undefined)
  const next = () => (counts.posted - counts.read < window ? requests[counts.posted++ % requests.length]! : null)
  const { reject: failed } = complete
  callers = Array.from({ length: trips.connections }, () => {
    return new Caller({ ...trips, next, answered: () => undefined, failed })
  })
}

const count = (): TripCounts => ({ ...counts })

/** Posts nothing more. Resolves when every text has been reported as read; rejects if a text or a call failed. */
async function end(): Promise<TripCounts> {
  window = 0
  if (counts.read === counts.posted) complete.resolve()
  await complete.promise
  for (const caller of callers) caller.close()
  return counts
}

const methods = { listen, begin, count, end }
export type RoundTrips = typeof methods
serve(methods)
