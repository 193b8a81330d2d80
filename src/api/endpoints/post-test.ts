import type { Endpoint, SigningSecrets } from '../../domain/events/endpoint.ts'
import { TEST_EVENT, testBody } from '../../domain/events/event.ts'
import { type EndpointId, type InstanceId, newEventId } from '../../domain/ids.ts'
import type { ApiContext } from '../context.ts'
import type { WebhookTestView } from '../resources/events/webhook-test.ts'

/** Posts one signed test event, even to an inactive endpoint. @returns null if the endpoint no longer exists */
export async function postTest(
  context: ApiContext,
  { instanceId, id, url }: Pick<Endpoint, 'instanceId' | 'id' | 'url'>,
): Promise<WebhookTestView | null> {
  const posting = await context.store.endpoints.findPosting(instanceId, id, context.now())
  return posting === null ? null : postSigned(context, { endpoint: { instanceId, id }, url, secrets: posting.secrets })
}

/** @param to without `endpoint` if the URL belongs to no instance */
export async function postSigned(
  { webhooks, now }: ApiContext,
  to: { endpoint?: { instanceId: InstanceId; id: EndpointId }; url: string; secrets: SigningSecrets },
): Promise<WebhookTestView> {
  const { endpoint, url, secrets } = to
  const startedAt = now()
  const text = testBody(endpoint?.instanceId ?? null, startedAt)
  const body = Buffer.from(text)
  const eventId = newEventId(startedAt)
  const headers = webhooks.headersOf({ body, secrets, eventId, kind: TEST_EVENT, attemptNumber: 1, now: startedAt })
  const begun = performance.now()
  // Without a permit: a person waits for the answer, and must get it even while the lanes hold all permits.
  const outcome = await webhooks.post({ url, headers, body, endpoint })
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
