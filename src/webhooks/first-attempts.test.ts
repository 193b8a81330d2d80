import { expect, test } from 'vitest'
import { DEFAULT_ENDPOINT } from '../domain/events/endpoint.ts'
import type { DueDelivery } from '../store/deliveries/deliveries.ts'
import { FirstAttempts } from './first-attempts.ts'

function page(count: number): DueDelivery[] {
  return Array.from({ length: count }, (_, index) => ({
    seq: index + 1,
    id: `${index + 1}`,
    instanceId: 'a',
    eventId: `evt_${index + 1}`,
    endpointId: DEFAULT_ENDPOINT,
    requested: null,
    kind: 'message.sent',
    url: 'https://consumer.test/',
    body: new Uint8Array(),
    attemptNumber: 1,
    dueAt: 0,
    failedAt: null,
  }))
}

test.each([
  { consumer: 'fast', pageSize: 32, low: 8 },
  { consumer: 'slow', pageSize: 8, low: 1 },
] as const)(
  'for a $consumer consumer, $pageSize rows are read when fewer than $low are left',
  ({ consumer, pageSize, low }) => {
    const firsts = new FirstAttempts()
    const query = firsts.beginRead(2, consumer)
    expect(query).toEqual({ afterSeq: 0, limit: pageSize + 2 })
    firsts.endRead(query, page(pageSize + 2), new Set())
    while (!firsts.runsLow(consumer)) firsts.shift()
    expect(firsts.peek()?.seq).toBe(low === 1 ? undefined : pageSize + 2 - (low - 2))
  },
)
