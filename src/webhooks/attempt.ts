import type { Logger } from 'pino'
import type { AfterAttempt } from '../domain/events/delivery.ts'
import { afterFailedAttempt } from '../domain/events/delivery.ts'
import type { EndpointId, InstanceId } from '../domain/ids.ts'
import type { OpenSpan } from '../domain/trace-context.ts'
import type { Clock } from '../kit/clock.ts'
import type { AttemptRecord, DueDelivery } from '../store/deliveries/deliveries.ts'
import type { Endpoints } from '../store/endpoints/endpoints.ts'
import { StoreUnavailable } from '../store/errors.ts'
import type { Poster, PostOutcome } from './posting/post.ts'
import { type SigningKeys, signatureHeaders, signingKeys } from './posting/signature.ts'

/** The longest delay until a rotation takes effect if its hint is lost. */
const FRESH_MS = 1_000

export interface AttemptSettings {
  retryDelaysMs: readonly number[]
  /** Pombal's version, for the User-Agent. */
  version: string
}

export interface AttemptOptions {
  /** False if another node may have taken over the lease. Checked before each POST; true by default. */
  mayAct?: (() => boolean) | undefined
  post: Pick<Poster, 'send'>
  settings: AttemptSettings
  clock: Clock
  logger: Pick<Logger, 'info' | 'warn' | 'error'>
  /** Begins the span of an attempt. Undefined: traces are off. */
  traces?: { attempt(delivery: DueDelivery): OpenSpan } | undefined
  /** Sees each attempt that ended with an outcome, once. */
  observer?: { onAttempt(ended: EndedAttempt): void } | undefined
}

/** An attempt that ended and still has to be recorded, with its consequence for the delivery. */
export interface EndedAttempt {
  delivery: DueDelivery
  attempt: AttemptRecord
  /** From its due time to its start. */
  latenessMs: number
  /** A retry's times are those of the steady clock. */
  next: AfterAttempt
}

/** `PostingState` with signing keys instead of secrets: each key is created once. */
interface Posting {
  keys: SigningKeys
  /** False: the deliveries of the endpoint are held. */
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

/** Nothing was posted: the lease was not renewed in time, and another node may have taken over. */
export class LeaseNotRenewed extends Error {
  override readonly name = 'LeaseNotRenewed'
}

/**
 * Signs and posts once. Any 2xx is a success.
 * @throws LeaseNotRenewed
 * @throws StoreUnavailable
 */
export async function makeAttempt(
  delivery: DueDelivery,
  keys: SigningKeys,
  signal: AbortSignal,
  options: AttemptOptions,
): Promise<EndedAttempt> {
  const { clock, settings } = options
  const { body, eventId, kind, attemptNumber, url, dueAt, instanceId, endpointId } = delivery
  const startedAt = clock.now()
  const startedAtSteady = clock.steady()
  const { version, retryDelaysMs } = settings
  const headers = signatureHeaders({ body, keys, eventId, kind, attemptNumber, now: startedAt, version })
  if (options.mayAct?.() === false)
    throw new LeaseNotRenewed('Nothing was posted, because the lease was not renewed in time.')
  const span = options.traces?.attempt(delivery)
  const traceparent = span === undefined ? delivery.traceparent : span.traceparent
  const outcome = await options.post
    .send({
      url,
      headers: traceparent ? { ...headers, traceparent } : headers,
      body,
      signal,
      endpoint: { instanceId, id: endpointId },
    })
    .catch(error => {
      if (error instanceof StoreUnavailable) span?.end('store_unavailable')
      return onBug(error, delivery, options)
    })
  const endedAtSteady = clock.steady()
  const status = outcome.kind === 'answered' ? outcome.status : null
  const isSuccess = status !== null && status >= 200 && status < 300
  const attempt: AttemptRecord = {
    attemptNumber,
    requested: delivery.requested !== null,
    url,
    startedAt,
    durationMs: Math.round(endedAtSteady - startedAtSteady),
    status,
    error: outcome.kind === 'failed' ? outcome.error : null,
    responseExcerpt: outcome.kind === 'answered' ? outcome.excerpt : null,
  }
  span?.end(isSuccess ? null : (attempt.error ?? String(status)), status)
  const next = isSuccess ? ({ kind: 'delivered' } as const) : afterFailure(delivery, endedAtSteady, retryDelaysMs)
  return { delivery, attempt, latenessMs: Math.max(0, startedAtSteady - dueAt), next }
}

/**
 * A requested attempt that failed leaves the schedule as it was. If the clock was set back since the previous attempt, the delay of
 * the scheduled one begins now, because its time was calculated from a time in the future.
 */
function afterFailure(
  { attemptNumber, requested, failedAt: previousFailedAt }: DueDelivery,
  failedAt: number,
  retryDelaysMs: readonly number[],
): AfterAttempt {
  if (requested !== null) {
    const { scheduledAt } = requested
    const delayMs = scheduledAt - (previousFailedAt ?? failedAt)
    return { kind: 'retry', dueAt: Math.min(scheduledAt, failedAt + delayMs), failedAt }
  }
  return afterFailedAttempt(attemptNumber, failedAt, retryDelaysMs)
}

/** Logs one line. It contains only the host of the URL, because path and query may contain the consumer's secrets. */
export function logAttempt({ delivery, attempt, next }: EndedAttempt, logger: AttemptOptions['logger']): void {
  const { instanceId, endpointId, eventId, messageId, kind, url } = delivery
  const { attemptNumber, status, error, durationMs } = attempt
  const host = URL.parse(url)?.host ?? null
  const fact = {
    instanceId,
    endpointId,
    eventId,
    ...(messageId !== null && { messageId }),
    kind,
    host,
    attemptNumber,
    status,
    error,
    durationMs,
    next: next.kind,
  }
  logger[next.kind === 'exhausted' ? 'warn' : 'info'](fact, 'delivery.attempted')
}

/**
 * A bug counts as a failed attempt, so the retry schedule limits how often it happens.
 * @throws StoreUnavailable if the test receiver could not read the secrets; this is no failure of the consumer
 */
function onBug(error: unknown, { instanceId, eventId }: DueDelivery, { logger }: AttemptOptions): PostOutcome {
  if (error instanceof StoreUnavailable) throw error
  logger.error({ instanceId, eventId, err: error }, 'delivery.bug')
  return { kind: 'failed', error: 'internal_error' }
}
