import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Store } from '../../../src/store/store.ts'
import { ApiHarness } from './harness.ts'

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

let api: ApiHarness

beforeAll(async () => {
  api = await ApiHarness.start()
})
afterAll(() => api[Symbol.asyncDispose]())

describe('instances', () => {
  test('creation is 201 with the token, which is never shown again', async () => {
    const answer = await api.admin('POST', '/instances', { name: '  Shop ☕  ' })
    expect(answer.status).toBe(201)
    const { id, token } = answer.body.data
    expect(answer.body.data).toEqual({
      id: expect.stringMatching(/^inst_[0-9a-z]{12}$/),
      name: 'Shop ☕',
      kind: 'whatsapp',
      state: 'unlinked',
      reason: expect.any(String),
      phone: null,
      token: expect.stringMatching(/^pmb_[A-Za-z0-9_-]{43}$/),
      createdAt: expect.stringMatching(ISO),
    })
    const read = await api.admin('GET', `/instances/${id}`)
    const { token: _shownOnce, ...rest } = answer.body.data
    expect(read.body).toEqual({ data: rest })
    expect((await api.call({ path: '/v1/instance', key: token })).body.data).toMatchObject({ id, name: 'Shop ☕' })
  })

  test('name and body are optional; a new instance stays idle until somebody links it', async () => {
    for (const body of [undefined, {}, { kind: 'whatsapp' }]) {
      const { status, body: answer } = await api.admin('POST', '/instances', body)
      expect([status, answer.data.name, answer.data.kind]).toEqual([201, 'WhatsApp', 'whatsapp'])
      expect((await api.store.connections.find(answer.data.id))?.goal).toBe('idle')
    }
  })

  test('the goal of a new sandbox instance is online', async () => {
    const { body } = await api.admin('POST', '/instances', { kind: 'sandbox' })
    expect(body.data).toMatchObject({ kind: 'sandbox', name: 'Sandbox' })
    expect((await api.store.connections.find(body.data.id))?.goal).toBe('online')
  })

  test.each([
    { name: '' },
    { name: '   ' },
    { name: 'x'.repeat(101) },
    { name: 'a\u0000b' },
    { name: 'a\nb' },
    { name: 1 },
    { name: null },
    { kind: 'other' },
    { kind: null },
    { kind: ['sandbox'] },
  ])('%j is an invalid request', async body => {
    const answer = await api.admin('POST', '/instances', body)
    expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_request'])
  })

  test('a name may have 100 characters of any script', async () => {
    const name = '👋'.repeat(100)
    expect((await api.admin('POST', '/instances', { name })).body.data.name).toBe(name)
  })

  test('with the sandbox off, no sandbox instance can be created', async () => {
    const writeAs = () => Promise.reject(new Error('never asked'))
    await using off = await ApiHarness.start({
      options: { sandbox: { enabled: false, writeAs, isPhoneOn: async () => false, switchPhone: writeAs } },
    })
    expect((await off.admin('POST', '/instances', { kind: 'sandbox' })).body.error.code).toBe('sandbox_disabled')
    expect((await off.admin('POST', '/instances', { kind: 'whatsapp' })).status).toBe(201)
  })

  test('renaming changes the name and nothing else', async () => {
    const { id } = await api.createInstance()
    const answer = await api.admin('PATCH', `/instances/${id}`, { name: ' Other ' })
    expect([answer.status, answer.body.data.name]).toEqual([200, 'Other'])
    expect((await api.admin('GET', `/instances/${id}`)).body.data.name).toBe('Other')
    expect((await api.admin('PATCH', `/instances/${id}`, {})).body.error.code).toBe('invalid_request')
    expect((await api.admin('PATCH', `/instances/${id}`, { name: '' })).body.error.code).toBe('invalid_request')
  })

  test('deletion is 204, and the instance is gone immediately', async () => {
    const { id } = await api.createConnected()
    const answer = await api.admin('DELETE', `/instances/${id}`)
    expect([answer.status, answer.text, answer.headers.get('content-type')]).toEqual([204, '', null])
    expect((await api.admin('GET', `/instances/${id}`)).status).toBe(404)
    expect((await api.admin('GET', `/instances/${id}/connection`)).status).toBe(404)
    expect((await api.admin('DELETE', `/instances/${id}`)).status).toBe(404)
    const { body } = await api.admin('GET', '/instances?limit=200')
    expect(body.data.some((instance: { id: string }) => instance.id === id)).toBe(false)
  })
})

describe('lists', () => {
  test('pages by cursor list each entry once, newest first, until nextCursor is null', async () => {
    await using fresh = await ApiHarness.start()
    const made: string[] = []
    for (let n = 0; n < 7; n += 1) made.unshift((await fresh.createInstance()).id)
    const seen: string[] = []
    let cursor: string | null = null
    do {
      const query: string = cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`
      const { body } = await fresh.admin('GET', `/instances?limit=3${query}`)
      expect(body.data.length).toBeLessThanOrEqual(3)
      seen.push(...body.data.map(({ id }: { id: string }) => id))
      cursor = body.nextCursor
    } while (cursor !== null)
    expect(seen).toEqual(made)
    expect((await fresh.admin('GET', '/instances')).body).toMatchObject({ nextCursor: null })
  })

  test('search finds a part of a name', async () => {
    await api.admin('POST', '/instances', { name: 'Needle 4711' })
    const { body } = await api.admin('GET', '/instances?search=edle%204711')
    expect(body.data.map(({ name }: { name: string }) => name)).toEqual(['Needle 4711'])
    expect((await api.admin('GET', '/instances?search=%25_nothing')).body.data).toEqual([])
  })

  test.each([
    'limit=0',
    'limit=201',
    'limit=-1',
    'limit=1.5',
    'limit=x',
    'limit=',
    'limit=1&limit=2',
    'limit=1e999',
    'cursor=',
    'cursor=x',
    'cursor=%00',
    'cursor=bm90IGEgY3Vyc29y',
    `cursor=${'x'.repeat(2_000)}`,
    'cursor=a&cursor=b',
    'search=%00',
    'serach=Needle',
    'limit=1&state=moving',
    `search=${'x'.repeat(101)}`,
  ])('?%s is an invalid request', async query => {
    const answer = await api.admin('GET', `/instances?${query}`)
    expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_request'])
  })
})

test('a call whose instance is deleted while it runs is 404 on the management API, and 401 with a token', async () => {
  let deletes = false
  /** After `method` has found the instance, the instance is deleted. */
  function deletingAfter<T extends object>(store: Store, part: T, method: keyof T, idOf: (found: never) => string): T {
    return new Proxy(part, {
      get(target, name) {
        const original = Reflect.get(target, name) as (...args: unknown[]) => Promise<unknown>
        return async (...args: unknown[]) => {
          const found = await Reflect.apply(original, target, args)
          if (deletes && name === method) await store.instances.delete(idOf(found as never), Date.now())
          return found
        }
      },
    })
  }
  await using racing = await ApiHarness.start({
    store: store => ({
      instances: deletingAfter(store, store.instances, 'find', ({ id }: { id: string }) => id),
      admission: deletingAfter(store, store.admission, 'admit', (found: { instanceId: string }) => found.instanceId),
    }),
  })
  const text = { to: '5511987654321', text: 'x' }
  const message = '/messages/msg_000000000000'
  const calls = [
    ['POST', '/messages', text],
    ['PUT', `${message}/reaction`, { emoji: '👍' }],
    ['DELETE', `${message}/reaction`],
    ['PATCH', message, { text: 'y' }],
    ['DELETE', message],
    ['POST', `${message}/read`],
    ['POST', '/media', 'bytes'],
  ] as const
  const answers: unknown[] = []
  for (const [method, path, body] of calls) {
    deletes = false
    const { id } = await racing.createConnected()
    deletes = true
    const answer = await racing.admin(method, `/instances/${id}${path}`, body)
    answers.push([method, path, answer.status, answer.body.error.code])
  }
  expect(answers).toEqual(calls.map(([method, path]) => [method, path, 404, 'instance_not_found']))
  for (const [path, body] of [
    ['/messages/text', text],
    ['/media', 'bytes'],
  ] as const) {
    deletes = false
    const { token } = await racing.createConnected()
    deletes = true
    const answer = await racing.call({ method: 'POST', path: `/v1${path}`, key: token, body })
    expect([path, answer.status, answer.body.error.code]).toEqual([path, 401, 'invalid_token'])
  }
})
