import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Endpoints } from '../../store/endpoints/endpoints.ts'
import type { PosterOptions, PostOutcome, PostRequest } from './post.ts'

const SECRET_PREFIX = 'whsec_'
const ACCEPTED = 200
const UNAUTHORIZED = 401

/**
 * Answers posts to the test receiver in this process, like a consumer that checks `webhook-signature`. New users can
 * see signed events without a program of their own. Nothing is sent over a network, and only the attempt is stored.
 */
export function createTestReceiver(
  endpoints: Pick<Endpoints, 'findPosting'>,
  now: () => number = Date.now,
): NonNullable<PosterOptions['testReceiver']> {
  return request => {
    const { event, instanceId } = JSON.parse(Buffer.from(request.body).toString()) as Posted
    // An alert must not count as sent. The host name does not exist, so posting the alert fails.
    return instanceId === undefined ? null : receive(request, event, endpoints, now())
  }
}

/** Only events have `instanceId`. */
interface Posted {
  event: string
  instanceId?: string | null
}

async function receive(
  request: PostRequest,
  event: string,
  endpoints: Pick<Endpoints, 'findPosting'>,
  now: number,
): Promise<PostOutcome> {
  const { endpoint } = request
  const posting = endpoint === undefined ? null : await endpoints.findPosting(endpoint.instanceId, endpoint.id, now)
  const secrets = posting === null ? [] : [posting.secrets.current, posting.secrets.previous ?? []].flat()
  // The endpoint may be gone when its last deliveries arrive, and the test of an operator endpoint has no instance.
  const isValid = posting === null || secrets.some(secret => isSignedWith(request, secret))
  const signature = posting === null ? 'not checked' : isValid ? 'valid' : 'wrong'
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
