import { createHmac, timingSafeEqual } from 'node:crypto'
import { isTestReceiver } from '../../domain/events/endpoint.ts'
import type { InstanceId } from '../../domain/ids.ts'
import type { Endpoints } from '../../store/endpoints/endpoints.ts'
import type { PosterOptions, PostOutcome, PostRequest } from './post.ts'

const SECRET_PREFIX = 'whsec_'
const ACCEPTED = 200
const UNAUTHORIZED = 401

/**
 * Answers posts to the test receiver in this process, as a consumer would that checks `webhook-signature`. Newcomers see signed
 * events without a program of their own. Nothing is sent over a network, and nothing but the attempt is stored.
 */
export function createTestReceiver(endpoints: Pick<Endpoints, 'list'>): NonNullable<PosterOptions['testReceiver']> {
  return request => {
    const instanceId = instanceOf(request)
    // An alert must not count as sent. As the name exists nowhere, posting it fails.
    return instanceId === undefined ? null : receive(request, instanceId, endpoints)
  }
}

/** Undefined unless it is an event of an instance. */
function instanceOf({ body }: PostRequest): InstanceId | undefined {
  return (JSON.parse(Buffer.from(body).toString()) as { instanceId?: InstanceId }).instanceId
}

async function receive(
  request: PostRequest,
  instanceId: InstanceId,
  endpoints: Pick<Endpoints, 'list'>,
): Promise<PostOutcome> {
  const { event } = JSON.parse(Buffer.from(request.body).toString()) as { event: string }
  const known = (await endpoints.list(instanceId)).filter(({ url }) => isTestReceiver(url))
  // Its last deliveries may arrive after the endpoint is gone.
  const isValid = known.length === 0 || known.some(({ secret }) => isSignedWith(request, secret))
  const signature = known.length === 0 ? 'not checked: the endpoint is gone' : isValid ? 'valid' : 'wrong'
  const excerpt = JSON.stringify({ receiver: 'Pombal test receiver', event, signature })
  return { kind: 'answered', status: isValid ? ACCEPTED : UNAUTHORIZED, excerpt }
}

/** Standard Webhooks 1.0, "Verifying webhook authenticity". */
function isSignedWith({ headers, body }: PostRequest, secret: string): boolean {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures = '' } = headers
  const key = Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64')
  const expected = Buffer.from(
    `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`,
  )
  return signatures.split(' ').some(text => {
    const given = Buffer.from(text)
    return given.length === expected.length && timingSafeEqual(given, expected)
  })
}
