import type { EndpointId, InstanceId } from '../../domain/ids.ts'
import type { Clock } from '../../kit/clock.ts'
import type { Endpoints } from '../../store/endpoints/endpoints.ts'
import { type SigningKeys, signingKeys } from './signature.ts'

/** The longest delay until a rotation takes effect if its hint is lost. */
const FRESH_MS = 1_000

/** What an attempt needs to know about its endpoint. */
interface Posting {
  keys: SigningKeys
  /** False: its deliveries are held. */
  active: boolean
}

/** The signing keys of one endpoint and whether it is active, at most 1 s old. */
export class PostingCache {
  readonly #instanceId: InstanceId
  readonly #endpointId: EndpointId
  readonly #endpoints: Pick<Endpoints, 'findPosting'>
  readonly #clock: Clock
  #reading: Promise<Posting> | null = null
  #freshUntil = Number.NEGATIVE_INFINITY

  constructor(instanceId: InstanceId, endpointId: EndpointId, endpoints: Pick<Endpoints, 'findPosting'>, clock: Clock) {
    this.#instanceId = instanceId
    this.#endpointId = endpointId
    this.#endpoints = endpoints
    this.#clock = clock
  }

  get(): Promise<Posting> {
    if (this.#reading && this.#clock.steady() < this.#freshUntil) return this.#reading
    const reading = this.#read()
    this.#reading = reading
    this.#freshUntil = this.#clock.steady() + FRESH_MS
    reading.catch(() => {
      if (this.#reading === reading) this.#reading = null
    })
    return reading
  }

  invalidate(): void {
    this.#reading = null
  }

  async #read(): Promise<Posting> {
    const state = await this.#endpoints.findPosting(this.#instanceId, this.#endpointId, this.#clock.now())
    if (state === null) throw new Error(`Endpoint ${this.#endpointId} of ${this.#instanceId} is gone.`)
    return { keys: signingKeys(state.secrets), active: state.active }
  }
}
