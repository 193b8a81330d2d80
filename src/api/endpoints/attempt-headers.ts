import type { InstanceId } from '../../domain/ids.ts'
import { EventLoopBudget } from '../../kit/event-loop-budget.ts'
import type { AttemptRecord } from '../../store/deliveries/deliveries.ts'
import type { EventDetail } from '../../store/events/events.ts'
import type { ApiContext } from '../context.ts'
import type { HeadersOfAttempt } from '../resources/events/event.ts'
import { withoutSignatures } from '../resources/events/hide-endpoint.ts'

/** The signatures of one attempt take a few milliseconds if the body is large. Other calls run in between. */
const signatures = new EventLoopBudget(1)
/** Longer than it takes from the time that is recorded for a new secret until all attempts use it. */
const SECRET_IN_USE_AFTER_MS = 10_000

/** Recreates the headers of past attempts from the body, the time and the secrets that were in force. */
export async function createHeadersOf(
  { store: { endpoints }, webhooks }: ApiContext,
  instanceId: InstanceId,
  event: EventDetail,
): Promise<HeadersOfAttempt> {
  const { id: eventId, kind } = event
  const body = Buffer.from(event.body)
  const headers = new Map<AttemptRecord, Record<string, string>>()
  for (const { endpointId, log } of event.deliveries) {
    const changedAt = await endpoints.findSecretChangedAt(instanceId, endpointId)
    for (const attempt of log) {
      const { attemptNumber, startedAt } = attempt
      const posting = await endpoints.findPosting(instanceId, endpointId, startedAt)
      if (posting === null) continue
      await signatures.take(instanceId)
      const { secrets } = posting
      const made = webhooks.headersOf({ body, secrets, eventId, kind, attemptNumber, now: startedAt })
      const mayBeOlder = changedAt !== null && startedAt < changedAt + SECRET_IN_USE_AFTER_MS
      headers.set(attempt, mayBeOlder ? withoutSignatures(made) : made)
    }
  }
  return attempt => headers.get(attempt) ?? {}
}
