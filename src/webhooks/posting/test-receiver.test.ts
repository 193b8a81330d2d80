import { describe, expect, onTestFinished, test } from 'vitest'
import { TEST_RECEIVER_URL } from '../../domain/events/endpoint.ts'
import type { EndpointId, InstanceId } from '../../domain/ids.ts'
import { createAddressGuard } from '../../outbound/address-guard.ts'
import { createPoster } from './post.ts'
import { signatureHeaders, signingKeys } from './signature.ts'
import { createTestReceiver } from './test-receiver.ts'

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo='
const OTHER = 'whsec_AAAQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo='
const body = Buffer.from('{"event":"message.sent","instanceId":"inst_1"}')

const blocked = { kind: 'failed', error: 'blocked_address' } as const

/** Nothing is posted over a network, because every address is blocked. @param secrets of the endpoints, by their ID */
function receiverOf(secrets: Readonly<Record<string, string>>) {
  const findPosting = async (_instanceId: string, id: string) =>
    secrets[id] === undefined ? null : { secrets: { current: secrets[id], previous: [] }, active: true }
  const guard = createAddressGuard({ loopbackAndPrivateAllowed: false, allowedNetworks: [], ownPorts: [] })
  const resolve = async () => [{ address: '127.0.0.1', family: 4 as const }]
  const poster = createPoster({ guard, resolve, timeoutMs: 5_000, testReceiver: createTestReceiver({ findPosting }) })
  onTestFinished(() => poster.close())
  return poster
}

function request(secret: string, url = TEST_RECEIVER_URL) {
  const keys = signingKeys({ current: secret, previous: [] })
  const signed = { body, keys, eventId: 'evt_1', kind: 'message.sent', attemptNumber: 1, now: 0, version: '1' } as const
  const endpoint = { instanceId: 'inst_1' as InstanceId, id: 'operator_1' as EndpointId }
  return { url, body, endpoint, headers: signatureHeaders(signed) }
}

describe('the test receiver', () => {
  test('accepts what is signed with the secret of the endpoint, and posts nothing', async () => {
    const answer = await receiverOf({ endpoint_1: OTHER, operator_1: SECRET }).send(request(SECRET))
    expect(answer).toMatchObject({ status: 200, excerpt: expect.stringContaining('"signature":"valid"') })
  })

  test('refuses another signature', async () => {
    const receiver = receiverOf({ endpoint_1: SECRET, operator_1: OTHER })
    expect(await receiver.send(request(SECRET))).toMatchObject({ kind: 'answered', status: 401 })
  })

  test('accepts the last events of an endpoint that is gone', async () => {
    const answer = await receiverOf({}).send(request(SECRET))
    expect(answer).toMatchObject({ status: 200, excerpt: expect.stringContaining('not checked') })
  })

  test('accepts only events: an alert to it is posted to the network, and fails', async () => {
    const alert = { ...request(SECRET), body: Buffer.from('{"event":"alert","title":"Pombal"}') }
    expect(await receiverOf({}).send(alert)).toEqual(blocked)
  })

  test('does not answer for any other URL', async () => {
    const receiver = receiverOf({ operator_1: SECRET })
    const urls = ['https://example.com/', 'https://example.com/?test-receiver.pombal.invalid', 'http://127.0.0.1:1/']
    for (const url of urls) expect(await receiver.send(request(SECRET, url))).toEqual(blocked)
  })
})
