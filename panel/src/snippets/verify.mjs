import { createHmac, timingSafeEqual } from 'node:crypto'

/** @param {Buffer} body the raw body @param headers the headers, with names in lower case */
export function isFromPombal(body, headers, secret) {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
  const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.`
  const expected = Buffer.from(createHmac('sha256', key).update(signed).update(body).digest('base64'))
  // For 24 hours after a new secret was created, there is also a signature with each former secret.
  const isSigned = (headers['webhook-signature'] ?? '').split(' ').some(entry => {
    const given = Buffer.from(entry.slice('v1,'.length))
    return given.length === expected.length && timingSafeEqual(given, expected)
  })
  // Each attempt has a new timestamp, so an old one means that somebody posts a recorded request again.
  return isSigned && Math.abs(Date.now() / 1000 - Number(headers['webhook-timestamp'])) <= 300
}
