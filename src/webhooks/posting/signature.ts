import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'
import type { ALERT_POST } from '../../domain/alert.ts'
import type { EventKind, TEST_EVENT } from '../../domain/events/event.ts'
import type { EndpointId, EventId, InstanceId } from '../../domain/ids.ts'
import type { SigningSecrets } from '../../domain/instance.ts'
import type { Clock } from '../../kit/clock.ts'
import type { Endpoints } from '../../store/endpoints/endpoints.ts'

const SECRET_PREFIX = 'whsec_'
/** The longest delay until a rotation takes effect if its hint is lost. */
const FRESH_MS = 1_000

export interface SigningKeys {
  /** For `X-Service-Signature`: the whole current secret in UTF-8. */
  service: KeyObject
  /** For `webhook-signature`, one for each valid secret: the decoded base64 after `whsec_`. */
  standard: readonly KeyObject[]
}

export interface SignedAttempt {
  /** The exact bytes to post. */
  body: Uint8Array
  keys: SigningKeys
  eventId: EventId | string
  kind: EventKind | typeof TEST_EVENT | typeof ALERT_POST
  /** From 1. */
  attemptNumber: number
  /** The start of the attempt, milliseconds since 1970. */
  now: number
  version: string
}

export function signingKeys({ current, previous }: SigningSecrets): SigningKeys {
  const valid = previous === null ? [current] : [current, previous]
  return {
    service: createSecretKey(current, 'utf8'),
    standard: valid.map(secret => createSecretKey(secret.slice(SECRET_PREFIX.length), 'base64')),
  }
}

/** All headers of one attempt (contract §5). `webhook-signature` follows Standard Webhooks 1.0, "Webhook headers". */
export function signatureHeaders(attempt: SignedAttempt): Record<string, string> {
  const { body, keys, eventId } = attempt
  const timestamp = Math.floor(attempt.now / 1000).toString()
  return {
    'Content-Type': 'application/json',
    'User-Agent': `Pombal/${attempt.version}`,
    'X-Service-Signature': `sha256=${createHmac('sha256', keys.service).update(body).digest('hex')}`,
    'X-Service-Event': attempt.kind,
    'X-Service-Attempt': attempt.attemptNumber.toString(),
    'webhook-id': eventId,
    'webhook-timestamp': timestamp,
    'webhook-signature': keys.standard
      .map(key => `v1,${createHmac('sha256', key).update(`${eventId}.${timestamp}.`).update(body).digest('base64')}`)
      .join(' '),
  }
}

/** What an attempt needs to know about its endpoint. */
export interface Posting {
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
