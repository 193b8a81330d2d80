import type { Logger } from 'pino'
import type { AfterAttempt } from '../domain/delivery.ts'
import { afterAttempt } from '../domain/delivery.ts'
import type { SigningSecrets } from '../domain/instance.ts'
import type { AttemptRecord, DueDelivery } from '../store/deliveries/deliveries.ts'
import type { Clock } from './clock.ts'
import type { Poster, PostOutcome } from './post.ts'
import { signatureHeaders } from './signature.ts'

export interface AttemptSettings {
  retryDelaysMs: readonly number[]
  /** Of Pombal, for the User-Agent. */
  version: string
}

export interface AttemptMeans {
  /** Whether the lease cannot have gone to another node unnoticed; asked before each post. By default always. */
  mayAct?: (() => boolean) | undefined
  post: Pick<Poster, 'send'>
  settings: AttemptSettings
  clock: Clock
  logger: Pick<Logger, 'info' | 'warn' | 'error'>
  /** Is told of every attempt whose end is known, once. */
  onEnded?: ((ended: EndedAttempt) => void) | undefined
}

/** An attempt whose end is known, and what follows from it: to be recorded. */
export interface EndedAttempt {
  delivery: DueDelivery
  attempt: AttemptRecord
  /** From the moment it was due to its start. */
  latenessMs: number
  /** The retry's moment is one of the steady clock. */
  next: AfterAttempt
}

/** Nothing was posted: the lease was not renewed for so long that another node may have taken over. */
export class MayNotAct extends Error {
  override readonly name = 'MayNotAct'
}

/**
 * Signs and posts once, and tells of it in the log. Any 2xx is a success.
 * @throws MayNotAct
 */
export async function makeAttempt(
  delivery: DueDelivery,
  secrets: SigningSecrets,
  signal: AbortSignal,
  means: AttemptMeans,
): Promise<EndedAttempt> {
  const { clock, settings } = means
  const { body, eventId, kind, attemptNumber, url, dueAt } = delivery
  const startedAt = clock.now()
  const startedAtSteady = clock.steady()
  const { version, retryDelaysMs } = settings
  const headers = signatureHeaders({ body, secrets, eventId, kind, attemptNumber, now: startedAt, version })
  if (means.mayAct?.() === false) throw new MayNotAct('The lease has to be renewed first.')
  const outcome = await means.post.send({ url, headers, body, signal }).catch(error => onBug(error, delivery, means))
  const endedAtSteady = clock.steady()
  const attempt: AttemptRecord = {
    attemptNumber,
    url,
    startedAt,
    durationMs: Math.round(endedAtSteady - startedAtSteady),
    ...told(outcome),
  }
  const next = afterAttempt(isSuccess(attempt.status), attemptNumber, endedAtSteady, retryDelaysMs)
  return { delivery, attempt, latenessMs: Math.max(0, startedAtSteady - dueAt), next }
}

/** One line for each attempt. The URL's path and query may hold what only the consumer should know: the host alone. */
export function logAttempt({ delivery, attempt, next }: EndedAttempt, logger: AttemptMeans['logger']): void {
  const { instanceId, eventId, kind, url } = delivery
  const { attemptNumber, status, error, durationMs } = attempt
  const host = URL.canParse(url) ? new URL(url).host : null
  const fact = { instanceId, eventId, kind, host, attemptNumber, status, error, durationMs, next: next.kind }
  logger[next.kind === 'exhausted' ? 'warn' : 'info'](fact, 'delivery.attempted')
}

function told(outcome: PostOutcome): Pick<AttemptRecord, 'status' | 'error' | 'responseExcerpt'> {
  return outcome.kind === 'answered'
    ? { status: outcome.status, error: null, responseExcerpt: outcome.excerpt }
    : { status: null, error: outcome.error, responseExcerpt: null }
}

function isSuccess(status: number | null): boolean {
  return status !== null && status >= 200 && status < 300
}

/** Counted as a failed attempt, so that the schedule bounds how often a bug strikes. */
function onBug(error: unknown, { instanceId, eventId }: DueDelivery, { logger }: AttemptMeans): PostOutcome {
  logger.error({ instanceId, eventId, err: error }, 'delivery.bug')
  return { kind: 'failed', error: 'internal_error' }
}
