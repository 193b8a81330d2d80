import { readdir } from 'node:fs/promises'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { ONE_STORE } from '../../../databases/one-store.ts'
import { CONDITION_WITHIN_MS } from '../../../deadlines.ts'
import { until } from '../../../until.ts'
import { ApiHarness, type Created } from '../harness.ts'
import { createPerson, startSession } from './people.ts'

/** Longer than a body that is sent with its headers takes. */
const HELD_MS = 200
const TEXT = { to: '5511987654321', text: 'held' }

describe.each(ONE_STORE)('a call whose body arrives late, on %s', on => {
  let api: ApiHarness
  let instance: Created
  /** Called while a proxy is tested. */
  let whileProxyIsTested = async () => {}

  beforeAll(async () => {
    const proxies = { check: () => whileProxyIsTested() }
    api = await ApiHarness.start({ on, options: { proxies } })
    instance = await api.createConnected()
    await createPerson(api, 'owner')
  })
  afterEach(() => void vi.restoreAllMocks())
  afterAll(() => api[Symbol.asyncDispose]())

  /** Sends everything but the last byte, waits for the first check of access, and calls `meanwhile` before the last byte. */
  async function hold(
    target: string,
    headers: Record<string, string>,
    content: object | string,
    meanwhile: () => Promise<unknown>,
  ): Promise<{ status: number; code: string | undefined }> {
    const body = typeof content === 'string' ? content : JSON.stringify(content)
    const checks = [vi.spyOn(api.store.admission, 'admit'), vi.spyOn(api.store.sessions, 'find')]
    // A call earlier in the same test counted on the same spies.
    for (const check of checks) check.mockClear()
    const all = {
      host: `127.0.0.1:${api.port}`,
      'content-type': typeof content === 'string' ? 'text/plain' : 'application/json',
      'content-length': String(Buffer.byteLength(body)),
      connection: 'close',
      ...headers,
    }
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
    const socket = connect(api.port, '127.0.0.1')
    let received = ''
    const closed = new Promise<void>((resolve, reject) => {
      socket.setEncoding('utf8').on('data', text => {
        received += text
      })
      socket.on('close', () => resolve()).on('error', reject)
      socket.setTimeout(CONDITION_WITHIN_MS, () => socket.destroy(new Error('No answer in time')))
    })
    socket.write(`${target} HTTP/1.1\r\n${lines.join('')}\r\n${body.slice(0, -1)}`)
    await until('the first check', () => checks.some(({ mock }) => mock.settledResults[0]?.type === 'fulfilled'))
    await meanwhile()
    await sleep(HELD_MS)
    socket.write(body.slice(-1))
    await closed
    const [head = '', json = ''] = received.split('\r\n\r\n')
    return { status: Number(head.split(' ')[1]), code: json === '' ? undefined : JSON.parse(json).error?.code }
  }

  const bearer = (key: string) => ({ authorization: `Bearer ${key}` })
  const sends = 'POST /v1/messages/text'
  const removal = (id: string) => () => api.admin('DELETE', `/accounts/${id}`)
  const textsOf = async () => (await api.admin('GET', `/instances/${instance.id}/messages`)).body.data.length
  const namesOf = async () => (await api.store.accounts.list()).map(({ name }) => name)

  async function createKey(scope: string) {
    return (await api.admin('POST', `/instances/${instance.id}/keys`, { name: 'CRM', scopes: [scope] })).body.data
  }
  const revocation = (id: string) => () => api.admin('DELETE', `/instances/${instance.id}/keys/${id}`)

  test('succeeds if the caller still has access', async () => {
    const { key } = await createKey('send')
    expect(await hold(sends, bearer(key), TEXT, async () => {})).toMatchObject({ status: 202 })
    const { headers } = await createPerson(api, 'owner')
    const body = { name: `late ${on}`, role: 'viewer' }
    expect(await hold('POST /admin/v1/accounts', headers, body, async () => {})).toMatchObject({ status: 201 })
    const upload = await hold('POST /v1/media', bearer(instance.token), 'kept', async () => {})
    expect(upload).toMatchObject({ status: 201 })
  })

  test('is refused if its API key was revoked, and nothing is sent', async () => {
    const { id, key } = await createKey('send')
    const before = await textsOf()
    expect(await hold(sends, bearer(key), TEXT, revocation(id))).toEqual({ status: 401, code: 'invalid_token' })
    expect(await textsOf()).toBe(before)
  })

  test('is refused if its token was replaced, and nothing is sent', async () => {
    const replaced = await api.createConnected()
    const replacement = () => api.admin('POST', `/instances/${replaced.id}/token`)
    expect(await hold(sends, bearer(replaced.token), TEXT, replacement)).toEqual({ status: 401, code: 'invalid_token' })
    expect((await api.admin('GET', `/instances/${replaced.id}/messages`)).body.data).toEqual([])
  })

  test('is refused if its account was removed, and a removed owner invites nobody', async () => {
    const { id, headers } = await createPerson(api, 'owner')
    const body = { name: `ghost ${on}`, role: 'owner' }
    const refused = await hold('POST /admin/v1/accounts', headers, body, removal(id))
    expect(refused).toEqual({ status: 401, code: 'invalid_admin_key' })
    expect(await namesOf()).not.toContain(body.name)
  })

  test('is refused if its session was ended', async () => {
    const { id, headers } = await createPerson(api, 'owner')
    const other = await startSession(api, id)
    const body = { name: `ended ${on}`, role: 'owner' }
    const refused = await hold('POST /admin/v1/accounts', headers, body, () =>
      api.call({ method: 'DELETE', path: '/admin/v1/sessions', headers: other.headers }),
    )
    expect(refused).toEqual({ status: 401, code: 'invalid_admin_key' })
    expect(await namesOf()).not.toContain(body.name)
  })

  test('is refused if its account lost the role, or may no longer reach the instance', async () => {
    const change = (id: string, access: object) => () => api.admin('PUT', `/accounts/${id}/access`, access)
    const owner = await createPerson(api, 'owner')
    const body = { name: `demoted ${on}`, role: 'owner' }
    const demoted = await hold('POST /admin/v1/accounts', owner.headers, body, change(owner.id, { role: 'operator' }))
    expect(demoted).toEqual({ status: 403, code: 'forbidden' })
    expect(await namesOf()).not.toContain(body.name)

    const operator = await createPerson(api, 'operator', [instance.id])
    const before = await textsOf()
    const path = `POST /admin/v1/instances/${instance.id}/messages`
    const limited = change(operator.id, { role: 'operator', instances: [] })
    expect(await hold(path, operator.headers, TEXT, limited)).toEqual({ status: 404, code: 'instance_not_found' })
    expect(await textsOf()).toBe(before)
  })

  test('is refused if it is an upload, and the file is not stored', async () => {
    const { id: uploads } = await api.createInstance()
    const token = (await api.admin('POST', `/instances/${uploads}/keys`, { name: 'files', scopes: ['media'] })).body
      .data
    const revoke = () => api.admin('DELETE', `/instances/${uploads}/keys/${token.id}`)
    const byKey = await hold('POST /v1/media', bearer(token.key), 'a file', revoke)
    expect(byKey).toEqual({ status: 401, code: 'invalid_token' })

    const { id, headers } = await createPerson(api, 'operator')
    const byPerson = await hold(`POST /admin/v1/instances/${uploads}/media`, headers, 'another file', removal(id))
    expect(byPerson).toEqual({ status: 401, code: 'invalid_admin_key' })

    expect((await api.admin('GET', `/instances/${uploads}/media`)).body.data).toEqual([])
    const filesOf = () => readdir(`${api.mediaDir}/${uploads}`).catch(() => [])
    await until('the removal of the bytes', async () => (await filesOf()).length === 0)
  })

  test('a proxy is not stored if the account was removed during its test', async () => {
    const { id, headers } = await createPerson(api, 'operator')
    whileProxyIsTested = async () => void (await removal(id)())
    const body = { url: 'http://proxy.example:3128' }
    const path = `/admin/v1/instances/${instance.id}/proxy`
    const { status } = await api.call({ method: 'PUT', path, headers, body })
    expect(status).toBe(401)
    expect((await api.admin('GET', `/instances/${instance.id}/proxy`)).body.data).toEqual({ url: null })
  })
})

test('a call whose body arrives with its headers checks the token once', async () => {
  await using api = await ApiHarness.start()
  const instance = await api.createConnected()
  const again = vi.spyOn(api.store.admission, 'isValid')
  expect((await api.send(instance, TEXT)).status).toBe(202)
  expect(again).not.toHaveBeenCalled()
})
