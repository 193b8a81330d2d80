import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { isStandardSigned, Receiver } from '../receiver.ts'
import { Service } from '../service.ts'

describe('the management of alerts', () => {
  let service: Service
  let receiver: Receiver

  beforeEach(async () => {
    service = await new Service({ env: { SANDBOX: 'on' } }).start()
    receiver = await new Receiver().listen()
  })
  afterEach(async () => {
    await service.dispose()
    await receiver.close()
  })

  async function call(method: string, path: string, body?: object) {
    const response = await fetch(`${service.url}/admin/v1/alerts${path}`, {
      method,
      headers: { Authorization: `Bearer ${service.adminKey}`, ...(body && { 'Content-Type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    return {
      status: response.status,
      text,
      ...(text === '' ? {} : (JSON.parse(text) as { data?: never; error?: never })),
    } as {
      status: number
      text: string
      data: Record<string, never> & Record<string, never>[]
      error: { code: string; details?: { field: string }[] }
    }
  }

  test('a target is added, tested, listed without its secrets, and removed', async () => {
    const url = `${receiver.url}/secret-topic`
    const created = await call('POST', '/targets', { name: 'Night shift', channel: 'ntfy', url, token: 'tk_secret' })
    expect(created).toMatchObject({
      status: 201,
      data: { target: { name: 'Night shift', channel: 'ntfy' }, secret: null },
    })
    const { target } = created.data as unknown as { target: { id: string } }
    expect(await call('POST', `/targets/${target.id}/test`)).toMatchObject({ status: 200, data: { error: null } })
    expect(receiver.requests).toHaveLength(1)
    const listed = await call('GET', '/targets')
    expect(listed.data).toHaveLength(1)
    expect(listed.text + created.text).not.toMatch(/tk_secret|secret-topic/)
    expect((await call('DELETE', `/targets/${target.id}`)).status).toBe(204)
    expect(await call('DELETE', `/targets/${target.id}`)).toMatchObject({
      status: 404,
      error: { code: 'alert_target_not_found' },
    })
    expect(await call('POST', `/targets/${target.id}/test`)).toMatchObject({ status: 404 })
    expect(service.output).not.toMatch(/tk_secret|secret-topic/)
  })

  test('the secret of a webhook is shown once, and the test of a target that refuses returns the reason', async () => {
    receiver.answerWith(() => ({ kind: 'status', status: 500, body: 'broken' }))
    const created = await call('POST', '/targets', { name: 'Ops', channel: 'webhook', url: receiver.url })
    const { target, secret } = created.data as unknown as { target: { id: string }; secret: string }
    expect(secret).toMatch(/^whsec_/)
    expect(await call('POST', `/targets/${target.id}/test`)).toMatchObject({ data: { error: 'Answered 500: broken' } })
    expect(isStandardSigned(receiver.requests[0]!, secret)).toBe(true)
    expect((await call('GET', '/targets')).text).not.toContain(secret)
  })

  test.each([
    ['a field of another channel', { channel: 'slack', url: 'https://hooks.example/x', chatId: '1' }, 'chatId'],
    ['no chat', { channel: 'telegram', url: 'https://api.example/bot1/sendMessage' }, 'chatId'],
    ['no URL', { channel: 'webhook' }, 'url'],
    ['no topic', { channel: 'ntfy', url: 'https://ntfy.example/' }, 'url'],
    ['e-mail without a mail server', { channel: 'email', to: 'a@example.com' }, 'channel'],
    ['a line break in an e-mail address', { channel: 'email', to: 'a@example.com\nBcc: b@example.com' }, '/to'],
    ['a metadata address', { channel: 'webhook', url: 'http://169.254.169.254/' }, 'url'],
    ['an unknown channel', { channel: 'fax' }, '/channel'],
  ])('%s is refused', async (_what, body, field) => {
    const refused = await call('POST', '/targets', { name: 'Ops', ...body })
    expect(refused).toMatchObject({ status: 400, error: { code: 'invalid_request' } })
    expect(JSON.stringify(refused.error)).toContain(field.replace('/', ''))
    expect((await call('GET', '/targets')).data).toEqual([])
  })

  test('the delay of a rule is set, and a nonsensical one is refused', async () => {
    expect((await call('PUT', '/rules/number_down', { afterMinutes: 30 })).data).toContainEqual({
      rule: 'number_down',
      afterMinutes: 30,
    })
    expect((await call('PUT', '/rules/number_down', { afterMinutes: null })).status).toBe(200)
    expect((await call('GET', '/rules')).data).toContainEqual({ rule: 'number_down', afterMinutes: null })
    expect((await call('PUT', '/rules/number_down', { afterMinutes: -1 })).status).toBe(400)
    expect((await call('PUT', '/rules/moon', { afterMinutes: 1 })).status).toBe(400)
    expect(await call('GET', '')).toMatchObject({ status: 200, data: [] })
  })
})
