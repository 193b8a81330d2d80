import type { Endpoint } from '../../domain/events/endpoint.ts'
import { TEST_EVENT, testBody } from '../../domain/events/event.ts'
import { newEventId } from '../../domain/ids.ts'
import type { ApiContext } from '../context.ts'
import type { WebhookTestView } from '../resources/events/webhook-test.ts'

/** Posts one signed test event at once, even to an inactive endpoint. @returns null if the endpoint does not exist any more */
export async function postTest(
  { store, webhooks, now }: ApiContext,
  { instanceId, id, url }: Pick<Endpoint, 'instanceId' | 'id' | 'url'>,
): Promise<WebhookTestView | null> {
  const startedAt = now()
  const posting = await store.endpoints.findPosting(instanceId, id, startedAt)
  if (posting === null) return null
  const { secrets } = posting
  const text = testBody(instanceId, startedAt)
  const body = Buffer.from(text)
  const eventId = newEventId(startedAt)
  const headers = webhooks.headersOf({ body, secrets, eventId, kind: TEST_EVENT, attemptNumber: 1, now: startedAt })
  const begun = performance.now()
  // Without a permit: a person waits for the answer, and must get it when the lanes hold all permits.
  const outcome = await webhooks.post({ url, headers, body })
  const answered = outcome.kind === 'answered'
  return {
    url,
    status: answered ? outcome.status : null,
    error: answered ? null : outcome.error,
    durationMs: Math.round(performance.now() - begun),
    responseExcerpt: answered ? outcome.excerpt : null,
    headers,
    body: text,
  }
}
