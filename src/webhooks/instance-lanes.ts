import { DEFAULT_ENDPOINT } from '../domain/events/endpoint.ts'
import type { EndpointId, InstanceId } from '../domain/ids.ts'
import type { Lease } from '../store/leases/leases.ts'
import type { EndedAttempt } from './attempt.ts'
import { Lane, type LaneOptions } from './lane.ts'

/** The pause after a failed read of the endpoints. */
const READ_AGAIN_MS = 1_000
/** A lane is closed only when its endpoint has no deliveries, so there are no attempts to wait for. */
const IDLE_GRACE_MS = 0

/**
 * The lanes of an instance: always one for the default endpoint, and one for each other endpoint that exists or still
 * has deliveries.
 */
export class InstanceLanes {
  readonly #instanceId: InstanceId
  readonly #options: LaneOptions
  readonly #lanes = new Map<EndpointId, Lane>()
  readonly #unsubscribe: () => void
  #lease: Lease
  #reading = false
  #readAgain = false
  #cancelTimer = () => {}
  #isShut = false

  /** @param unrecorded by the instance's previous lanes; recorded first */
  constructor(lease: Lease, options: LaneOptions, unrecorded: readonly EndedAttempt[]) {
    this.#lease = lease
    this.#instanceId = lease.instanceId
    this.#options = options
    this.#unsubscribe = options.store.hints.on('webhook', () => this.#readEndpoints(), lease.instanceId)
    for (const id of new Set([DEFAULT_ENDPOINT, ...unrecorded.map(({ delivery }) => delivery.endpointId)])) {
      const its = unrecorded.filter(({ delivery }) => delivery.endpointId === id)
      this.#lanes.set(id, new Lane(lease, id, options, its))
    }
  }

  /** Attempts that are running or not yet recorded. */
  get inFlight(): number {
    let sum = 0
    for (const lane of this.#lanes.values()) sum += lane.inFlight
    return sum
  }

  /** Attempts that ended and could not be recorded. */
  get unrecorded(): readonly EndedAttempt[] {
    return [...this.#lanes.values()].flatMap(lane => lane.unrecorded)
  }

  /** Continues under a newer epoch of the same owner. */
  adopt(lease: Lease): void {
    if (lease.epoch > this.#lease.epoch) this.#lease = lease
    for (const lane of this.#lanes.values()) lane.adopt(lease)
  }

  /** Reads the database: there may be endpoints, and deliveries that can start. */
  poll(): void {
    for (const lane of this.#lanes.values()) lane.poll()
    this.#readEndpoints()
  }

  async shut(graceMs: number): Promise<void> {
    this.#isShut = true
    this.#unsubscribe()
    this.#cancelTimer()
    await Promise.all([...this.#lanes.values()].map(lane => lane.shut(graceMs)))
  }

  #readEndpoints(): void {
    this.#readAgain = this.#reading
    if (this.#reading || this.#isShut) return
    const { store, clock, logger } = this.#options
    this.#reading = true
    this.#cancelTimer()
    store.endpoints
      .listPosting(this.#instanceId)
      .then(
        ids => this.#open(ids),
        error => {
          logger.warn({ instanceId: this.#instanceId, err: error }, 'lane.paused')
          if (!this.#isShut) this.#cancelTimer = clock.after(READ_AGAIN_MS, () => this.#readEndpoints())
        },
      )
      .finally(() => {
        this.#reading = false
        if (this.#readAgain) this.#readEndpoints()
      })
  }

  #open(ids: readonly EndpointId[]): void {
    if (this.#isShut) return
    for (const id of ids) {
      if (this.#lanes.has(id)) continue
      const lane = new Lane(this.#lease, id, this.#options)
      this.#lanes.set(id, lane)
      lane.wake()
    }
    for (const [id, lane] of this.#lanes) {
      if (id === DEFAULT_ENDPOINT || ids.includes(id) || lane.inFlight > 0) continue
      this.#lanes.delete(id)
      void lane.shut(IDLE_GRACE_MS)
    }
  }
}
