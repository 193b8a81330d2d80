/**
 * The webhooks module alone on a store, set up as in app.ts, with a lane for every instance. On request it records incoming
 * messages for one instance, and returns the times at which it began to record each.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { pino } from 'pino'
import type { InstanceId } from '../../src/domain/ids.ts'
import { createAddressGuard } from '../../src/outbound/address-guard.ts'
import type { Lease } from '../../src/store/leases/leases.ts'
import { openStore, type StoreOptions } from '../../src/store/open-store.ts'
import type { Store } from '../../src/store/store.ts'
import { Dispatcher } from '../../src/webhooks/dispatcher.ts'
import { createPoster, type Poster } from '../../src/webhooks/posting/post.ts'
import { monotonicMs } from '../harness/clock.ts'
import { acquireAll, incomingMessage } from '../harness/consumers.ts'
import { serve } from '../harness/remote.ts'

/** The schedule of the contract. */
const RETRY_DELAYS_MS = [1_000, 5_000, 30_000, 120_000, 600_000]

const logger = pino({ level: 'silent' })
let store: Store
let leases: Map<InstanceId, Lease>
let poster: Poster
let dispatcher: Dispatcher

/** @param timeoutMs of one attempt */
async function open(options: Omit<StoreOptions, 'logger'>, timeoutMs: number): Promise<void> {
  store = await openStore({ ...options, logger })
  leases = await acquireAll(store)
  const guard = createAddressGuard({ loopbackAndPrivateAllowed: true, allowedNetworks: [], ownPorts: [] })
  poster = createPoster({ guard, timeoutMs })
  dispatcher = new Dispatcher({
    store,
    post: poster,
    settings: { retryDelaysMs: RETRY_DELAYS_MS, version: 'bench' },
    logger,
    onLeaseLost: () => process.exit(1),
  })
  for (const lease of leases.values()) dispatcher.open(lease)
}

/**
 * Records one event every `everyMs` on average, at random intervals, so that events do not keep step with the timers of the lanes.
 * @returns the time at which it began to record each
 */
async function record(instanceId: InstanceId, count: number, everyMs: number): Promise<number[]> {
  const begunAt: number[] = []
  for (let index = 0; index < count; index += 1) {
    const now = Date.now()
    begunAt.push(monotonicMs())
    await store.events.storeIncoming(leases.get(instanceId)!, incomingMessage(`lane-${now}-${index}`, now), now)
    await sleep(everyMs * (0.5 + Math.random()))
  }
  return begunAt
}

async function close(): Promise<void> {
  await dispatcher.close()
  await poster.close()
  await Promise.all([...leases.values()].map(lease => store.leases.release(lease)))
  await store.close()
}

const methods = { open, record, close }
export type LanesProcess = typeof methods
serve(methods)
