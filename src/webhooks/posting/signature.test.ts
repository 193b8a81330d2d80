import { execFileSync } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Webhook } from 'standardwebhooks'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { newWebhookSecret } from '../../api/admin/secrets.ts'
import type { EventKind } from '../../domain/events/event.ts'
import { signatureHeaders, signingKeys } from './signature.ts'

interface Vector {
  name: string
  secret: string
  previousSecret: string | null
  eventId: string
  kind: EventKind
  attemptNumber: number
  at: string
  version: string
  body: string
  headers: Record<string, string>
}

const file = new URL('../../../docs/signature-vectors.json', import.meta.url)
const { vectors } = JSON.parse(readFileSync(file, 'utf8')) as { vectors: Vector[] }

function headersOf(vector: Vector): Record<string, string> {
  const { eventId, kind, attemptNumber, version } = vector
  const keys = signingKeys({
    current: vector.secret,
    previous: vector.previousSecret === null ? [] : [vector.previousSecret],
  })
  const now = Date.parse(vector.at)
  return signatureHeaders({ body: Buffer.from(vector.body), keys, eventId, kind, attemptNumber, now, version })
}

function lowerCased(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}

afterEach(() => vi.useRealTimers())

describe('the published vectors', () => {
  test.each(vectors)('$name: equal the headers that are sent', vector => {
    expect(headersOf(vector)).toEqual(vector.headers)
  })

  test.each(vectors)('$name: openssl makes the same X-Service-Signature from the secret string', vector => {
    const answer = execFileSync('openssl', ['dgst', '-sha256', '-hmac', vector.secret], { input: vector.body })
    const hex = answer.toString().trim().split(' ').at(-1)
    expect(vector.headers['X-Service-Signature']).toBe(`sha256=${hex}`)
  })

  test.each(vectors)('$name: the standardwebhooks library verifies it with each secret in force', vector => {
    vi.useFakeTimers({ now: new Date(vector.at) })
    for (const secret of [vector.secret, vector.previousSecret]) {
      if (secret === null) continue
      expect(new Webhook(secret).verify(vector.body, lowerCased(vector.headers))).toEqual(JSON.parse(vector.body))
    }
  })

  test('one of them has two secrets', () => {
    expect(vectors.some(({ previousSecret }) => previousSecret !== null)).toBe(true)
  })
})

describe('an attempt’s headers', () => {
  const secrets = { current: newWebhookSecret(), previous: [newWebhookSecret()] }
  const body = Buffer.from('{"event":"message.sent"}')
  const keys = signingKeys(secrets)
  const attempt = { body, keys, eventId: 'evt_1', kind: 'message.sent' as const, attemptNumber: 3, version: '1.2.3' }

  test('X-Service-Signature uses a new secret at once', () => {
    const headers = signatureHeaders({ ...attempt, now: 1_700_000_000_999 })
    const expected = createHmac('sha256', secrets.current).update(body).digest('hex')
    expect(headers['X-Service-Signature']).toBe(`sha256=${expected}`)
    expect(headers['webhook-signature']?.split(' ')).toHaveLength(2)
  })

  test('the timestamp is in whole seconds and never later than the attempt', () => {
    expect(signatureHeaders({ ...attempt, now: 1_700_000_000_999 })['webhook-timestamp']).toBe('1700000000')
  })

  test('an unknown secret verifies nothing', () => {
    const headers = lowerCased(signatureHeaders({ ...attempt, now: Date.now() }))
    expect(() => new Webhook(newWebhookSecret()).verify(body, headers)).toThrow()
    expect(() => new Webhook(secrets.current).verify('{"event":"message.read"}', headers)).toThrow()
  })
})

test('a new secret is whsec_ and the base64 of 32 bytes, and unique', () => {
  const secret = newWebhookSecret()
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
  expect(Buffer.from(secret.slice('whsec_'.length), 'base64')).toHaveLength(32)
  expect(newWebhookSecret()).not.toBe(secret)
})
