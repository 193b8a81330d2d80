import { createHmac, timingSafeEqual } from 'node:crypto'

/** @param {Buffer} body the raw body @param {string} signature the header X-Service-Signature */
export function isFromPombal(body, signature, secret) {
  const expected = Buffer.from(`sha256=${createHmac('sha256', secret).update(body).digest('hex')}`)
  const given = Buffer.from(signature ?? '')
  return given.length === expected.length && timingSafeEqual(given, expected)
}
