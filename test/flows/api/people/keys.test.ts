import Fastify, { type RouteOptions } from 'fastify'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Api, ApiContext } from '../../../../src/api/context.ts'
import { AllowedMethods } from '../../../../src/api/http/allowed-methods.ts'
import { registerV1 } from '../../../../src/api/v1/routes.ts'
import { SCOPES } from '../../../../src/domain/access.ts'
import { ONE_STORE } from '../../../databases/one-store.ts'
import { startService } from '../../../service.ts'
import { ApiHarness, type Created } from '../harness.ts'

/** Every route that the public API registers. */
async function listRoutes(): Promise<RouteOptions[]> {
  const routes: RouteOptions[] = []
  const server = Fastify({ exposeHeadRoutes: false })
  server.setValidatorCompiler(() => () => true)
  server.addHook('onRoute', route => void (route.config?.refusesOnly || routes.push(route)))
  const context = { settings: { documented: { webhookRetryDelaysMs: [] } }, store: {}, now: Date.now }
  registerV1(server as unknown as Api, context as unknown as ApiContext, new AllowedMethods())
  await server.ready()
  await server.close()
  return routes
}

const ROUTES = await listRoutes()

describe.each(ONE_STORE)('API keys on %s', on => {
  let api: ApiHarness
  let instance: Created

  beforeAll(async () => {
    api = await ApiHarness.start({ on })
    instance = await api.createConnected()
  })
  afterAll(() => api[Symbol.asyncDispose]())

  async function createKey(scopes: readonly string[], more: object = {}): Promise<{ id: string; key: string }> {
    const { status, body } = await api.admin('POST', `/instances/${instance.id}/keys`, { name: 'CRM', scopes, ...more })
    expect(status).toBe(201)
    return body.data
  }

  /** The code of a refusal. Does not wait for the end of a stream. */
  async function codeOf(method: string, path: string, key: string): Promise<string | undefined> {
    const hasBody = ['POST', 'PUT', 'PATCH'].includes(method)
    const reading = new AbortController()
    const answer = await fetch(api.url + path, {
      method,
      headers: { authorization: `Bearer ${key}`, ...(hasBody && { 'content-type': 'application/json' }) },
      ...(hasBody && { body: '{}' }),
      signal: reading.signal,
    })
    const isJson = answer.headers.get('content-type')?.startsWith('application/json')
    const code = isJson ? ((await answer.json()) as { error?: { code: string } }).error?.code : undefined
    reading.abort()
    return code
  }

  test('a key is shown once; the list has its prefix, scopes and expiry', async () => {
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
    const answer = await api.admin('POST', `/instances/${instance.id}/keys`, {
      name: ' CRM ',
      scopes: ['send', 'read'],
      expiresAt,
    })
    expect(answer.status).toBe(201)
    const { key, ...shown } = answer.body.data
    expect(key).toMatch(/^pmb_[A-Za-z0-9_-]{43}$/)
    expect(shown).toEqual({
      id: expect.stringMatching(/^key_[0-9a-z]{12}$/),
      name: 'CRM',
      prefix: key.slice(0, 10),
      scopes: ['send', 'read'],
      createdAt: expect.any(String),
      expiresAt,
      lastUsedAt: null,
    })
    const list = await api.admin('GET', `/instances/${instance.id}/keys`)
    expect(list.body).toEqual({ data: expect.arrayContaining([shown]), nextCursor: null })
    expect(list.text).not.toContain(key)
    expect(JSON.stringify(api.logged)).not.toContain(key)
  })

  test('a key sends and reads as its instance; a call outside its scopes is forbidden, and counts for the rate', async () => {
    const { key } = await createKey(['send'])
    const sent = await api.send({ ...instance, token: key }, { to: '5511987654321', text: 'Hi' })
    expect(sent.status).toBe(202)
    const refused = await api.call({ path: `/v1/messages/${sent.body.data.id}`, key })
    expect([refused.status, refused.body.error.code]).toEqual([403, 'forbidden'])
    expect(Number(refused.headers.get('ratelimit-remaining'))).toBe(Number(sent.headers.get('ratelimit-remaining')) - 1)
    expect((await api.call({ path: '/v1/instance', key })).body.data.id).toBe(instance.id)
    expect((await api.call({ path: '/v1/nope', key })).status).toBe(404)
    expect((await api.call({ method: 'DELETE', path: '/v1/instance', key })).status).toBe(405)
  })

  test('a new token replaces only the token', async () => {
    const { key } = await createKey(['read'])
    const { body } = await api.admin('POST', `/instances/${instance.id}/token`)
    expect((await api.call({ path: '/v1/instance', key: instance.token })).status).toBe(401)
    instance = { ...instance, token: body.data.token }
    expect((await api.call({ path: '/v1/instance', key })).status).toBe(200)
  })

  test('a revoked key is refused immediately', async () => {
    const { id, key } = await createKey(['read'])
    expect((await api.call({ path: '/v1/instance', key })).status).toBe(200)
    expect((await api.admin('DELETE', `/instances/${instance.id}/keys/${id}`)).status).toBe(204)
    const refused = await api.call({ path: '/v1/instance', key })
    expect([refused.status, refused.body.error.code]).toEqual([401, 'invalid_token'])
    const again = await api.admin('DELETE', `/instances/${instance.id}/keys/${id}`)
    expect([again.status, again.body.error.code]).toEqual([404, 'key_not_found'])
    const audited = api.logged.filter(({ msg, keyId }) => msg === 'audit' && keyId === id)
    expect(audited.map(({ action }) => action)).toEqual(['revokeKey'])
  })

  test.each([
    { scopes: [] },
    { scopes: ['send', 'send'] },
    { scopes: ['admin'] },
    { scopes: 'send' },
    { name: '' },
    { name: undefined },
    { expiresAt: 'tomorrow' },
    { expiresAt: '2020-01-01T00:00:00Z' },
  ])('%j is an invalid request', async change => {
    const body = { name: 'CRM', scopes: ['send'], ...change }
    const answer = await api.admin('POST', `/instances/${instance.id}/keys`, body)
    expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_request'])
  })

  test('there are no keys of an instance that does not exist', async () => {
    const missing = '/instances/inst_aaaaaaaaaaaa/keys'
    const answers = [
      await api.admin('GET', missing),
      await api.admin('POST', missing, { name: 'CRM', scopes: ['send'] }),
      await api.admin('DELETE', `${missing}/key_aaaaaaaaaaaa`),
    ]
    expect(answers.map(({ body }) => body.error.code)).toEqual(Array(3).fill('instance_not_found'))
  })

  test('the 51st key is refused', async () => {
    const other = await api.createInstance()
    const create = () => api.admin('POST', `/instances/${other.id}/keys`, { name: 'CRM', scopes: ['send'] })
    const answers = await Promise.all(Array.from({ length: 51 }, create))
    const refused = answers.filter(({ status }) => status === 409)
    expect(refused.map(({ body }) => body.error.code)).toEqual(['too_many_keys'])
  })

  describe.each(ROUTES.map(route => [`${route.method} ${route.url}`, route] as const))('%s', (_name, route) => {
    test('has a scope, and a key without that scope is refused', async () => {
      const scope = route.config?.scope
      expect(scope).toBeDefined()
      const path = route.url.replace(':instanceId', instance.id).replace(/:\w+/g, 'msg_1')
      for (const one of SCOPES) {
        const { id, key } = await createKey([one])
        const code = await codeOf(String(route.method), path, key)
        expect(code === 'forbidden', one).toBe(scope !== 'any' && scope !== one)
        await api.admin('DELETE', `/instances/${instance.id}/keys/${id}`)
      }
    })
  })
})

test('the list shows when a key was last used, even after a restart', async () => {
  const service = await startService()
  try {
    const { id } = await service.admin.createInstance('whatsapp', 'Shop')
    const path = `/admin/v1/instances/${id}/keys`
    const ask = async (method: string, body?: object) => {
      const headers = { authorization: `Bearer ${service.adminKey}`, 'content-type': 'application/json' }
      const answer = await fetch(service.url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) })
      return ((await answer.json()) as { data: unknown }).data
    }
    const create = async (name: string) => (await ask('POST', { name, scopes: ['read'] })) as { key: string }
    const { key } = await create('used')
    await create('unused')
    const calledAt = Date.now()
    const answer = await fetch(`${service.url}/v1/instance`, { headers: { authorization: `Bearer ${key}` } })
    expect(answer.status).toBe(200)
    const answeredAt = Date.now()
    await service.restart()
    const listed = (await ask('GET')) as { name: string; lastUsedAt: string | null }[]
    const lastUse = Object.fromEntries(listed.map(({ name, lastUsedAt }) => [name, lastUsedAt]))
    expect(lastUse['unused']).toBeNull()
    expect(Date.parse(lastUse['used']!)).toBeGreaterThanOrEqual(calledAt)
    expect(Date.parse(lastUse['used']!)).toBeLessThanOrEqual(answeredAt)
  } finally {
    await service.dispose()
  }
})
