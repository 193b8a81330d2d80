import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'
import type { ALERT_POST } from '../../domain/alert.ts'
import type { SigningSecrets } from '../../domain/events/endpoint.ts'
import type { EventKind, TEST_EVENT } from '../../domain/events/event.ts'
import type { EventId } from '../../domain/ids.ts'

const SECRET_PREFIX = 'whsec_'

export interface SigningKeys {
  /** For `X-Service-Signature`: the whole current secret in UTF-8. */
  service: KeyObject
  /** For `webhook-signature`, one for each valid secret: the decoded base64 after `whsec_`. */
  standard: readonly KeyObject[]
}

interface SignedAttempt {
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
  return {
    service: createSecretKey(current, 'utf8'),
    standard: [current, ...previous].map(secret => createSecretKey(secret.slice(SECRET_PREFIX.length), 'base64')),
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
