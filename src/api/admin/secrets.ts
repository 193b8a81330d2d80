import { randomBytes } from 'node:crypto'

const SECRET_BYTES = 32

/** `pmb_` and 43 characters (contract §6): 256 random bits in base64url. */
export function newToken(): string {
  return `pmb_${randomBytes(SECRET_BYTES).toString('base64url')}`
}

/** `whsec_` and the base64 of 32 random bytes (contract §5), as Standard Webhooks defines it. */
export function newWebhookSecret(): string {
  return `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`
}
