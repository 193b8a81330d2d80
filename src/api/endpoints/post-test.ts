import type { Endpoint, SigningSecrets } from '../../domain/events/endpoint.ts'
import { TEST_EVENT, testBody } from '../../domain/events/event.ts'
import { type InstanceId, newEventId } from '../../domain/ids.ts'
import type { ApiContext } from '../context.ts'
import type { WebhookTestView } from '../resources/events/webhook-test.ts'

/** Posts one signed test event at once, even to an inactive endpoint. @returns null if the endpoint does not exist any more */
export async function postTest(
  context: ApiContext,
  { instanceId, id, url }: Pick<Endpoint, 'instanceId' | 'id' | 'url'>,
): Promise<WebhookTestView | null> {
  const posting = await context.store.endpoints.findPosting(instanceId, id, context.now())
  return posting === null ? null : postSigned(context, { instanceId, url, secrets: posting.secrets })
}

/** @param to `instanceId` is null for an endpoint that belongs to no instance */
export async function postSigned(
  { webhooks, now }: ApiContext,
  { instanceId, url, secrets }: { instanceId: InstanceId | null; url: string; secrets: SigningSecrets },
): Promise<WebhookTestView> {
  const startedAt = now()
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
