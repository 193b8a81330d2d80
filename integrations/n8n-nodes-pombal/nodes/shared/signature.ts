import { createHmac, timingSafeEqual } from 'node:crypto'

const SECRET_PREFIX = 'whsec_'
const SIGNATURE_PREFIX = 'v1,'
/** How far the clocks of Pombal and n8n may differ. Older requests may be replays by somebody else. */
const TOLERANCE_SECONDS = 300

/**
 * Standard Webhooks: HMAC-SHA256 over the ID, the time and the bytes of the body. The header has a signature
 * with the secret, and one with each of the last five old secrets that was replaced less than a day ago.
 */
export function isSigned(
  secret: string,
  headers: Record<string, unknown>,
  body: Uint8Array | undefined,
  now: number,
): boolean {
  const { 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': signatures } = headers
  if (typeof id !== 'string' || typeof at !== 'string' || typeof signatures !== 'string' || body === undefined)
    return false
  if (!/^\d{1,15}$/.test(at) || Math.abs(now / 1000 - Number(at)) > TOLERANCE_SECONDS) return false
  const key = Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64')
  const expected = Buffer.from(createHmac('sha256', key).update(`${id}.${at}.`).update(body).digest('base64'))
  return signatures.split(' ').some(signature => {
    const given = Buffer.from(signature.slice(SIGNATURE_PREFIX.length))
    return (
      signature.startsWith(SIGNATURE_PREFIX) && given.length === expected.length && timingSafeEqual(given, expected)
    )
  })
}
