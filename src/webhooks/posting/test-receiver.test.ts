import { describe, expect, test } from 'vitest'
import { TEST_RECEIVER_URL } from '../../domain/events/endpoint.ts'
import { signatureHeaders, signingKeys } from './signature.ts'
import { withTestReceiver } from './test-receiver.ts'

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo='
const OTHER = 'whsec_AAAQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo='
const body = Buffer.from('{"event":"message.sent","instanceId":"inst_1"}')

function receiverOf(secrets: readonly string[]) {
  const posted: string[] = []
  const poster = {
    send: async ({ url }: { url: string }) => {
      posted.push(url)
      return { kind: 'answered', status: 204, excerpt: null } as const
    },
    close: async () => {},
  }
  const list = async () => secrets.map(secret => ({ url: TEST_RECEIVER_URL, secret }) as never)
  return { posted, receiver: withTestReceiver(poster, { list }) }
}

function request(secret: string, url = TEST_RECEIVER_URL) {
  const keys = signingKeys({ current: secret, previous: null })
  const signed = { body, keys, eventId: 'evt_1', kind: 'message.sent', attemptNumber: 1, now: 0, version: '1' } as const
  return { url, body, headers: signatureHeaders(signed) }
}

describe('the test receiver', () => {
  test('accepts what is signed with the secret of the endpoint, and posts nothing', async () => {
    const { posted, receiver } = receiverOf([OTHER, SECRET])
    const answer = await receiver.send(request(SECRET))
    expect(answer).toMatchObject({ status: 200, excerpt: expect.stringContaining('"signature":"valid"') })
    expect(posted).toEqual([])
  })

  test('refuses another signature', async () => {
    const { receiver } = receiverOf([OTHER])
    expect(await receiver.send(request(SECRET))).toMatchObject({ kind: 'answered', status: 401 })
  })

  test('accepts the last events of an endpoint that is gone', async () => {
    const { receiver } = receiverOf([])
    const answer = await receiver.send(request(SECRET))
    expect(answer).toMatchObject({ status: 200, excerpt: expect.stringContaining('not checked') })
  })

  test('accepts only events: an alert to it is posted to the network, and fails', async () => {
    const { posted, receiver } = receiverOf([])
    const alert = { ...request(SECRET), body: Buffer.from('{"event":"alert","title":"Pombal"}') }
    await receiver.send(alert)
    expect(posted).toEqual([TEST_RECEIVER_URL])
  })

  test('does not answer for any other URL', async () => {
    const { posted, receiver } = receiverOf([SECRET])
    const urls = ['https://example.com/', 'https://example.com/?test-receiver.pombal.invalid', 'http://127.0.0.1:1/']
    for (const url of urls) expect(await receiver.send(request(SECRET, url))).toMatchObject({ status: 204 })
    expect(posted).toEqual(urls)
  })
})
