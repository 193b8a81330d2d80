import { createHmac, createSecretKey } from 'node:crypto'
import type { EventKind, TEST_EVENT } from '../domain/event.ts'
import type { EventId, InstanceId } from '../domain/ids.ts'
import type { SigningSecrets } from '../domain/instance.ts'
import type { Instances } from '../store/instances/instances.ts'
import type { Clock } from './clock.ts'

const SECRET_PREFIX = 'whsec_'
/** The longest delay until a rotation takes effect if its hint is lost. */
const FRESH_MS = 1_000

export interface SignedAttempt {
  /** The exact bytes to post. */
  body: Uint8Array
  secrets: SigningSecrets
  eventId: EventId
  kind: EventKind | typeof TEST_EVENT
  /** From 1. */
  attemptNumber: number
  /** The start of the attempt, milliseconds since 1970. */
  now: number
  version: string
}

/**
 * All headers of one attempt (contract §5). `X-Service-Signature` uses the current secret only; its key is the whole
 * secret string in UTF-8. `webhook-signature` has one signature for each valid secret; its key is the decoded base64
 * after `whsec_` (Standard Webhooks 1.0, "Webhook headers").
 */
export function signatureHeaders(attempt: SignedAttempt): Record<string, string> {
  const { body, secrets, eventId } = attempt
  const timestamp = Math.floor(attempt.now / 1000).toString()
  const valid = secrets.previous === null ? [secrets.current] : [secrets.current, secrets.previous]
  return {
    'Content-Type': 'application/json',
    'User-Agent': `Pombal/${attempt.version}`,
    'X-Service-Signature': `sha256=${createHmac('sha256', secrets.current).update(body).digest('hex')}`,
    'X-Service-Event': attempt.kind,
    'X-Service-Attempt': attempt.attemptNumber.toString(),
    'webhook-id': eventId,
    'webhook-timestamp': timestamp,
    'webhook-signature': valid.map(secret => standardSignature(secret, eventId, timestamp, body)).join(' '),
  }
}

function standardSignature(secret: string, id: string, timestamp: string, body: Uint8Array): string {
  const key = createSecretKey(secret.slice(SECRET_PREFIX.length), 'base64')
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`
}

/** The signing secrets of one instance, at most 1 s old. */
export class SigningSecretsCache {
  readonly #instanceId: InstanceId
  readonly #instances: Pick<Instances, 'findSigningSecrets'>
  readonly #clock: Clock
  #reading: Promise<SigningSecrets> | null = null
  #freshUntil = Number.NEGATIVE_INFINITY

  constructor(instanceId: InstanceId, instances: Pick<Instances, 'findSigningSecrets'>, clock: Clock) {
    this.#instanceId = instanceId
    this.#instances = instances
    this.#clock = clock
  }

  get(): Promise<SigningSecrets> {
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

  async #read(): Promise<SigningSecrets> {
    const secrets = await this.#instances.findSigningSecrets(this.#instanceId, this.#clock.now())
    if (secrets === null) throw new Error(`Instance ${this.#instanceId} has no signing secrets.`)
    return secrets
  }
}
