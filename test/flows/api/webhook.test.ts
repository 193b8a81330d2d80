import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ApiHarness, type Created } from './harness.ts'

let api: ApiHarness
let instance: Created

beforeAll(async () => {
  api = await ApiHarness.start()
  instance = await api.createInstance()
})
afterAll(() => api[Symbol.asyncDispose]())

function put(body: unknown) {
  return api.call({ method: 'PUT', path: `/v1/webhooks/${instance.id}`, key: instance.token, body })
}

function get() {
  return api.call({ path: `/v1/webhooks/${instance.id}`, key: instance.token })
}

describe('the webhook configuration', () => {
  test('before a URL is set the webhook is inactive, and already has a secret', async () => {
    const other = await api.createInstance()
    const answer = await api.call({ path: `/v1/webhooks/${other.id}`, key: other.token })
    expect(answer.status).toBe(200)
    const secret = expect.stringMatching(/^whsec_[A-Za-z0-9+/]{43}=$/)
    expect(answer.body).toEqual({ data: { instanceId: other.id, url: null, secret, active: false } })
  })

  test('PUT answers 200 with the updated configuration, and GET the same', async () => {
    const before = (await get()).body.data
    const answer = await put({ url: 'https://example.com/hook?a=1', more: 'ignored' })
    expect(answer.status).toBe(200)
    expect(answer.body.data).toEqual({ ...before, url: 'https://example.com/hook?a=1', active: true })
    expect((await get()).body).toEqual(answer.body)
  })

  test.each([
    'https://example.com',
    'http://example.com:8080/a/b?c=d#e',
    'HTTPS://EXAMPLE.com/',
    'https://exämple.com/ü',
    'https://93.184.216.34/hook',
    'https://[2606:2800:220:1:248:1893:25c8:1946]/',
    `https://example.com/${'x'.repeat(2_028)}`,
  ])('accepts %s and keeps it as written', async url => {
    const answer = await put({ url })
    expect([answer.status, answer.body.data?.url]).toEqual([200, url])
  })

  test.each([
    ['no url', {}],
    ['null', { url: null }],
    ['a number', { url: 1 }],
    ['an empty one', { url: '' }],
    ['a relative one', { url: '/hook' }],
    ['one without a scheme', { url: 'example.com/hook' }],
    ['another scheme', { url: 'ftp://example.com' }],
    ['javascript', { url: 'javascript:alert(1)' }],
    ['a scheme alone', { url: 'https://' }],
    ['no host before the path', { url: 'https:///hook' }],
    ['no host before a backslash', { url: 'https://\\hook' }],
    ['a scheme without slashes', { url: 'https:example.com' }],
    ['space in it', { url: 'https://example.com/a b' }],
    ['space around it', { url: ' https://example.com' }],
    ['a line break in it', { url: 'https://example.com/\nx' }],
    ['U+0000 in it', { url: 'https://example.com/\u0000' }],
    ['a lone surrogate in it', { url: 'https://example.com/\ud800' }],
    ['a user in it', { url: 'https://user@example.com' }],
    ['credentials in it', { url: 'https://user:pass@example.com' }],
    ['more than 2,048 characters', { url: `https://example.com/${'x'.repeat(2_029)}` }],
    ['a port out of range', { url: 'https://example.com:99999/' }],
  ])('refuses %s', async (_what, body) => {
    const before = (await get()).body
    const answer = await put(JSON.stringify(body))
    expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_request'])
    expect(answer.body.error.message).toContain('"url"')
    expect((await get()).body).toEqual(before)
  })

  test.each([
    'http://127.0.0.1/',
    'http://[::1]:3000/',
    'http://10.0.0.1/',
    'http://192.168.1.1/',
    'http://169.254.169.254/latest/meta-data/',
    'http://2130706433/',
    'http://0x7f.1/',
    'http://[::ffff:127.0.0.1]/',
  ])('refuses %s, a literal address that webhooks may not reach', async url => {
    const answer = await put({ url })
    expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_request'])
  })

  test.each(['null', '[]', '{', '', '"https://example.com"'])('the body %j is an invalid request', async body => {
    expect((await put(body)).body.error.code).toBe('invalid_request')
  })
})
