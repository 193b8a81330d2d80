import { afterAll, beforeAll, expect, test } from 'vitest'
import { type LogLine, Service } from '../../service.ts'
import { until } from '../../until.ts'
import { MediaClient, png } from '../media/harness.ts'

const LOOPBACK = '127.0.0.1'

let service: Service

beforeAll(async () => {
  service = await new Service({ env: { RATE_LIMIT_PER_MINUTE: '3' } }).start()
})
afterAll(() => service.dispose())

async function call(method: string, path: string, headers: Record<string, string>, body?: object) {
  const answer = await fetch(`${service.url}${path}`, {
    method,
    headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  })
  await answer.arrayBuffer()
  return answer
}

function audited(): LogLine[] {
  return service.logLines.filter(({ msg }) => msg === 'audit')
}

test('each call that destroys data or changes access logs who, what, on which instance, from which address', async () => {
  const key = { authorization: `Bearer ${service.adminKey}` }
  const { id, token } = await service.admin.createInstance('whatsapp')
  const own = { authorization: `Bearer ${token}` }
  await call('PUT', `/v1/webhooks/${id}`, own, { url: 'http://127.0.0.1:9/confidential-path' })
  await call('POST', `/admin/v1/instances/${id}/webhook/secret`, key)
  const media = new MediaClient(service.url!, { token })
  const uploaded = await media.upload(png(100), {}, '?filename=confidential.png')
  await media.call('DELETE', uploaded.body.data.id)
  await call('POST', `/admin/v1/instances/${id}/events/redeliver`, key, { since: '2020-01-01T00:00:00Z' })
  const signedIn = await call('POST', '/admin/v1/session', {}, { key: service.adminKey })
  const session = { cookie: signedIn.headers.get('set-cookie')?.split(';')[0] ?? '', origin: service.url ?? '' }
  await call('PUT', '/admin/v1/password', session, { password: 'confidential password' })
  await call('POST', `/admin/v1/instances/${id}/token`, session)
  await call('POST', `/admin/v1/instances/${id}/logout`, session)
  await call('DELETE', `/admin/v1/instances/${id}`, key)
  await call('DELETE', '/admin/v1/instances/inst_aaaaaaaaaaaa', key)

  await until('the lines', () => audited().length >= 9)
  const by = (line: LogLine) => String(line['by']).replace(/^session \S{8}$/, 'session')
  expect(audited().map(line => [line['action'], by(line), line['instanceId'], line['address']])).toEqual([
    ['setWebhook', 'token', id, LOOPBACK],
    ['replaceWebhookSecret', 'admin key', id, LOOPBACK],
    ['eraseMedia', 'token', id, LOOPBACK],
    ['redeliverEvents', 'admin key', id, LOOPBACK],
    ['signIn', 'sign-in', undefined, LOOPBACK],
    ['setPassword', 'session', undefined, LOOPBACK],
    ['replaceToken', 'session', id, LOOPBACK],
    ['logoutInstance', 'session', id, LOOPBACK],
    ['deleteInstance', 'admin key', id, LOOPBACK],
  ])
  expect(audited()[2]?.['mediaId']).toBe(uploaded.body.data.id)
  expect(service.wholeLog).not.toContain('confidential')
})

test("refused keys and exceeded rates are logged with the caller's address", async () => {
  const { token } = await service.admin.createInstance('whatsapp')
  await call('GET', '/v1/instance', { authorization: 'Bearer pmb_wrong' })
  await call('GET', '/admin/v1/instances', { authorization: 'Bearer wrong' })
  for (let calls = 0; calls < 4; calls += 1) await call('GET', '/v1/instance', { authorization: `Bearer ${token}` })
  const refused = () => service.logLines.filter(({ status }) => status === 401 || status === 429)
  await until('the lines', () => refused().length >= 3)
  expect(refused().map(({ status, address }) => [status, address])).toEqual([
    [401, LOOPBACK],
    [401, LOOPBACK],
    [429, LOOPBACK],
  ])
})
