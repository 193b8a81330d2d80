import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createAddressGuard } from '../../outbound/address-guard.ts'
import { type Fetch, LONGEST_FETCH_PAUSE_MS } from '../../store/media/fetches.ts'
import type { Store } from '../../store/store.ts'
import { Fetcher } from './fetcher.ts'

test('a fetch that waits for space is tried again, and the attempt does not count', async () => {
  const server = createServer((_, response) => response.end('file'))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const due: Fetch[] = [
    {
      instanceId: 'inst_1',
      mediaId: 'med_1',
      url: `http://127.0.0.1:${port}/`,
      host: `127.0.0.1:${port}`,
      attempts: 11,
    },
  ]
  const { promise: retried, resolve } = Promise.withResolvers<[number, number]>()
  const fetches: Partial<Store['fetches']> = {
    claim: async () => due.pop() ?? null,
    nextInMs: async () => null,
    recordRetry: async (_, attempts, pauseMs) => resolve([attempts, pauseMs]),
    recordFailed: async (_, failure) => expect.unreachable(failure),
  }
  const ends: string[] = []
  const fetcher = new Fetcher({
    store: { fetches, hints: { on: () => () => undefined }, clock: { now: Date.now } } as unknown as Store,
    receiver: { receive: async () => 'busy' },
    guard: createAddressGuard({ loopbackAndPrivateAllowed: true, allowedNetworks: [], ports: [port], ownPorts: [] }),
    version: '1',
    logger: pino({ level: 'silent' }),
    onEnded: end => ends.push(end),
  })
  expect(await retried).toEqual([11, LONGEST_FETCH_PAUSE_MS])
  expect(ends).toEqual(['retry'])
  await fetcher.stop()
  server.close()
})
