import Fastify, { type RouteOptions } from 'fastify'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ACCESS } from '../../../../src/api/admin/access/access.ts'
import { registerAdmin } from '../../../../src/api/admin/routes.ts'
import type { Api, ApiContext } from '../../../../src/api/context.ts'
import { AllowedMethods } from '../../../../src/api/http/allowed-methods.ts'
import { includesRole, ROLES } from '../../../../src/domain/access.ts'
import { until } from '../../../until.ts'
import { ApiHarness, type Created } from '../harness.ts'
import { createPerson, startSession } from './people.ts'

/** Calls that need no key. */
const OPEN = ['signIn', 'acceptInvitation', 'getSignInOptions', 'startOidcSignIn', 'finishOidcSignIn']
/** Only owners may read it. */
const METRICS = '/metrics'

/** Every route that the management API registers. */
async function listRoutes(): Promise<RouteOptions[]> {
  const routes: RouteOptions[] = []
  const server = Fastify({ exposeHeadRoutes: false })
  server.setValidatorCompiler(() => () => true)
  server.addHook('onRoute', route => void (route.config?.refusesOnly || routes.push(route)))
  const context = { settings: { adminKey: 'x', documented: { webhookRetryDelaysMs: [] } }, store: {}, now: Date.now }
  registerAdmin(server as unknown as Api, context as unknown as ApiContext, new AllowedMethods())
  await server.ready()
  await server.close()
  return routes
}

const operationOf = ({ schema }: RouteOptions) => (schema as { operationId?: string } | undefined)?.operationId ?? ''

const ROUTES = await listRoutes()
const GUARDED = ROUTES.filter(route => !OPEN.includes(operationOf(route)))

describe('every call of the management API', () => {
  let api: ApiHarness

  beforeAll(async () => {
    api = await ApiHarness.start()
    // A call that concerns the last owner is refused, so these tests need another one.
    await createPerson(api, 'owner')
  })
  afterAll(() => api[Symbol.asyncDispose]())

  test('has a role, and no other call is listed', () => {
    const operations = GUARDED.filter(({ url }) => url !== METRICS).map(operationOf)
    expect([...new Set(operations)].sort()).toEqual(Object.keys(ACCESS).sort())
    expect(ROUTES.map(operationOf)).toEqual(expect.arrayContaining(OPEN))
  })

  /** The status and code, without waiting for the end of a stream. */
  async function call(route: RouteOptions, instanceId: string, headers: Record<string, string>) {
    const method = String(route.method)
    const path = route.url.replace('/instances/:id', `/instances/${instanceId}`).replace(/:\w+/g, 'x_missing')
    const hasBody = !['GET', 'DELETE'].includes(method)
    const query = route.schema?.querystring ? await requiredQuery(route) : ''
    const ended = new AbortController()
    const answer = await fetch(`${api.url}${path}${query}`, {
      method,
      headers: { ...headers, ...(hasBody && { 'content-type': 'application/json' }) },
      ...(hasBody && { body: '{}' }),
      signal: ended.signal,
    })
    const isStream = answer.headers.get('content-type')?.startsWith('text/event-stream') === true
    const text = isStream ? '' : await answer.text()
    ended.abort()
    const isJson = answer.headers.get('content-type')?.startsWith('application/json') === true
    return {
      status: answer.status,
      code: isJson ? (JSON.parse(text || '{}').error?.code as string | undefined) : undefined,
    }
  }

  async function requiredQuery(route: RouteOptions): Promise<string> {
    return { listActivity: '?ids=inst_1', getStatistics: '?hours=1', search: '?text=x' }[operationOf(route)] ?? ''
  }

  const isOfInstance = ({ url }: RouteOptions) => url.startsWith('/admin/v1/instances/:id')

  describe.each(GUARDED.map(route => [`${route.method} ${route.url}`, route] as const))('%s', (_name, route) => {
    const needed = ACCESS[operationOf(route)] ?? 'owner'

    test.each(ROLES)('is allowed for a %s exactly as listed', async role => {
      const own = await api.createInstance()
      const foreign = await api.createInstance()
      const person = await createPerson(api, role, [own.id])
      const isAllowed = includesRole(role, needed)
      const ofForeign = await call(route, foreign.id, person.headers)
      const session = await startSession(api, person.id)
      const ofOwn = await call(route, own.id, session.headers)
      expect(ofOwn.code === 'forbidden').toBe(!isAllowed)
      expect(ofForeign.code === 'forbidden').toBe(!isAllowed)
      expect(ofOwn.status).not.toBe(401)
      if (!isAllowed) return
      expect(ofOwn.code).not.toBe('instance_not_found')
      if (isOfInstance(route)) {
        if (role === 'owner') expect(ofForeign.code).not.toBe('instance_not_found')
        else expect([ofForeign.status, ofForeign.code]).toEqual([404, 'instance_not_found'])
      }
    })
  })
})

describe('somebody who is limited to an instance', () => {
  let api: ApiHarness
  let own: Created
  let foreign: Created

  beforeAll(async () => {
    api = await ApiHarness.start()
    own = await api.createInstance('whatsapp', 'Own shop')
    foreign = await api.createInstance('whatsapp', 'Foreign shop')
  })
  afterAll(() => api[Symbol.asyncDispose]())

  test.each(['operator', 'viewer'] as const)('%s: sees no other instance in any list, search or count', async role => {
    const { headers } = await createPerson(api, role, [own.id])
    const read = async (path: string) => (await api.call({ path: `/admin/v1${path}`, headers })).body.data
    const ids = (list: { id: string }[]) => list.map(({ id }) => id)
    expect(ids(await read('/instances'))).toEqual([own.id])
    expect(ids(await read('/instances?search=shop'))).toEqual([own.id])
    expect(await read(`/instances?search=${foreign.id}`)).toEqual([])
    const activity = await read(`/activity?ids=${own.id},${foreign.id},inst_aaaaaaaaaaaa`)
    expect(activity.map(({ instanceId }: { instanceId: string }) => instanceId)).toEqual([own.id])
    for (const id of [own.id, foreign.id]) await api.record(id, { state: 'stopped', reason: 'Stopped.' })
    const attention = await read('/attention')
    expect([attention.total, JSON.stringify(attention).includes(foreign.id)]).toEqual([1, false])
    const nobody = await createPerson(api, role, [])
    expect((await api.call({ path: '/admin/v1/instances', headers: nobody.headers })).body.data).toEqual([])
  })

  test('finds a number in their own instances, even if many others have it', async () => {
    const others = await Promise.all(Array.from({ length: 21 }, () => api.createInstance()))
    const mine = await api.createInstance()
    const { numbers } = api.store
    for (const { id } of [...others, mine]) await numbers.record(await api.lease(id), '5511900000009', null, Date.now())
    const { headers } = await createPerson(api, 'viewer', [mine.id])
    const found = (await api.call({ path: '/admin/v1/search?text=5511900000009', headers })).body.data
    expect(found.map(({ instance }: { instance: { id: string } }) => instance.id)).toEqual([mine.id])
  })

  test('the live stream reports only their own instances, and ends when their access changes', async () => {
    const person = await createPerson(api, 'viewer', [own.id])
    const answer = await fetch(`${api.url}/admin/v1/changes`, { headers: person.headers })
    let text = ''
    const reading = (async () => {
      for await (const chunk of answer.body!) text += Buffer.from(chunk).toString()
    })()
    await until('the stream to start', () => text.includes('refresh'))
    await api.admin('PATCH', `/instances/${foreign.id}`, { name: 'Foreign shop' })
    await api.admin('PATCH', `/instances/${own.id}`, { name: 'Own shop' })
    await until('the change', () => text.includes(own.id))
    expect(text).not.toContain(foreign.id)
    await api.store.accounts.change(person.id, { role: 'viewer', instances: [] })
    await reading
  })

  test.each([
    ['the account is limited', (id: string) => api.store.accounts.change(id, { role: 'viewer', instances: [] })],
    ['the account is removed', (id: string) => api.store.accounts.remove(id)],
    ['the sessions are ended', (id: string) => api.store.sessions.endOthers(id, null)],
  ])('nothing is sent once %s', async (when, change) => {
    const person = await createPerson(api, 'operator', [own.id])
    const streams = await Promise.all(
      ['/changes', `/instances/${own.id}/connection/stream`].map(async path => {
        const answer = await fetch(`${api.url}/admin/v1${path}`, { headers: person.headers })
        const stream = { text: '', ended: Promise.resolve() }
        stream.ended = (async () => {
          for await (const chunk of answer.body!) stream.text += Buffer.from(chunk).toString()
        })()
        return stream
      }),
    )
    await until('the streams to start', () => streams.every(({ text }) => text.includes('event:')))
    await change(person.id)
    await api.record(own.id, {
      state: 'linking',
      reason: 'Waiting.',
      qr: `2@${when}`,
      qrExpiresAt: Date.now() + 60_000,
    })
    await Promise.all(streams.map(({ ended }) => ended))
    for (const { text } of streams) {
      expect(text).not.toContain(`2@${when}`)
      expect(text).not.toContain('event: change')
    }
  })

  test('sees no secret, and as a viewer no code that links a phone', async () => {
    await api.record(own.id, {
      state: 'linking',
      reason: 'Waiting.',
      qr: '2@the code',
      qrExpiresAt: Date.now() + 60_000,
    })
    for (const role of ['operator', 'viewer'] as const) {
      const { headers } = await createPerson(api, role, [own.id])
      const webhook = await api.call({ path: `/admin/v1/instances/${own.id}/webhook`, headers })
      expect([webhook.status, webhook.body.data.secret]).toEqual([200, null])
      const connection = await api.call({ path: `/admin/v1/instances/${own.id}/connection`, headers })
      expect(connection.body.data.qr).toBe(role === 'operator' ? '2@the code' : null)
    }
    const { headers } = await createPerson(api, 'operator', [own.id])
    const body = { url: 'https://example.com/hook' }
    const set = await api.call({ method: 'PUT', path: `/admin/v1/instances/${own.id}/webhook`, headers, body })
    expect([set.status, set.body.data.secret]).toEqual([200, null])
    const owner = await createPerson(api, 'owner')
    const read = await api.call({ path: `/admin/v1/instances/${own.id}/webhook`, headers: owner.headers })
    expect(read.body.data.secret).toMatch(/^whsec_/)
  })
})
