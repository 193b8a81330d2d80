import { describe, expect, test, vi } from 'vitest'
import type { Credentials } from '../../../store/credentials/credentials.ts'
import { LeaseLost, StoreUnavailable } from '../../../store/errors.ts'
import { CredentialStore } from './credential-store.ts'
import { Journal } from './journal.ts'

const LEASE = { instanceId: 'inst_test', owner: 'test', epoch: 1 }

/** Rows in memory. Each commit waits for `gate` and fails with the next error in `fail`. */
function memory() {
  const rows = new Map<string, Uint8Array>()
  const state = { rows, commits: 0, gate: Promise.resolve(), fail: [] as Error[] }
  const credentials: Credentials = {
    async get(_, type, ids) {
      return new Map(
        ids.flatMap(id => {
          const row = rows.get(`${type}/${id}`)
          return row ? [[id, row] as const] : []
        }),
      )
    },
    async set(_, changes) {
      await state.gate
      await new Promise(resolve => setImmediate(resolve))
      const error = state.fail.shift()
      if (error) throw error
      state.commits += 1
      for (const { type, id, value } of changes) {
        if (value === null) rows.delete(`${type}/${id}`)
        else rows.set(`${type}/${id}`, value)
      }
    },
    async clear() {
      rows.clear()
    },
  }
  return { ...state, state, credentials }
}

function open(credentials: Credentials) {
  const broken: unknown[] = []
  const store = CredentialStore.create({ lease: LEASE, credentials, onBroken: error => broken.push(error) })
  return { store, broken }
}

const session = (counter: number) => ({ session: { 'a.0': { counter } as unknown as Uint8Array } })

test('a store that cannot be read ends the socket; a row that cannot be read does not', async () => {
  let error: Error = new StoreUnavailable()
  const { store, broken } = open({ ...memory().credentials, get: () => Promise.reject(error) })
  const clock = vi.spyOn(performance, 'now').mockReturnValueOnce(0).mockReturnValue(20_000)
  await expect(store.keys.get('session', ['a.0'])).rejects.toBe(error)
  clock.mockRestore()
  expect(broken).toEqual([error])
  error = new Error('The row cannot be decrypted.')
  await expect(store.keys.get('session', ['a.0'])).rejects.toBe(error)
  expect(broken).toHaveLength(1)
})

describe('changes of the keys', () => {
  test('are visible immediately, and durable when `settled` resolves', async () => {
    const { state, credentials } = memory()
    const { store } = open(credentials)
    const { promise, resolve } = Promise.withResolvers<void>()
    state.gate = promise
    await store.keys.set(session(1))
    expect(await store.keys.get('session', ['a.0'])).toEqual({ 'a.0': { counter: 1 } })
    expect(state.rows.size).toBe(0)
    const settled = store.settled()
    resolve()
    await settled
    expect(state.rows.size).toBe(1)
  })

  test('made during a commit share the next one, and the last value of a row is stored', async () => {
    const { state, credentials } = memory()
    const { store } = open(credentials)
    for (let counter = 1; counter <= 50; counter += 1) {
      await store.keys.set(session(counter))
      void store.settled()
    }
    await store.settled()
    expect(state.commits).toBeLessThan(4)
    const { store: next } = open(credentials)
    expect(await next.keys.get('session', ['a.0'])).toEqual({ 'a.0': { counter: 50 } })
  })

  test('share a commit with changed credentials, once a phone has confirmed them', async () => {
    const { state, credentials } = memory()
    const { store } = open(credentials)
    store.touchCreds()
    await store.settled()
    expect(state.commits).toBe(0)
    store.creds.account = {}
    store.touchCreds()
    await store.keys.set({ 'pre-key': { 1: { public: Buffer.from('p'), private: Buffer.from('s') } } })
    expect(state.commits).toBe(1)
    expect([...state.rows.keys()].sort()).toEqual(['creds/creds', 'pre-key/1'])
    const found = await CredentialStore.find({ lease: LEASE, credentials, onBroken: () => undefined })
    expect(found?.creds).toEqual(JSON.parse(JSON.stringify({ ...store.creds }), reviveBuffers))
  })

  test('wait while the store is unavailable', async () => {
    const { state, credentials } = memory()
    const { store, broken } = open(credentials)
    state.fail.push(new StoreUnavailable(), new StoreUnavailable())
    await store.keys.set(session(1))
    await store.settled()
    expect(state.rows.size).toBe(1)
    expect(broken).toEqual([])
  })

  test('are refused after a change that could not be stored: the next socket starts from the last consistent state', async () => {
    const { state, credentials } = memory()
    const { store, broken } = open(credentials)
    const lost = new LeaseLost(LEASE.instanceId)
    state.fail.push(lost)
    await store.keys.set(session(1))
    await expect(store.settled()).rejects.toBe(lost)
    await store.keys.set(session(2))
    await expect(store.settled()).rejects.toThrow()
    expect(broken).toEqual([lost])
    expect(state.rows.size).toBe(0)
  })

  test('are stored if they were made before the link ended, and refused afterwards', async () => {
    const { state, credentials } = memory()
    const { store, broken } = open(credentials)
    store.creds.account = {}
    await store.keys.set(session(1))
    const closed = store.close()
    await store.keys.set(session(2))
    const preKey = { public: Buffer.from('p'), private: Buffer.from('s') }
    await expect(store.keys.set({ 'pre-key': { 1: preKey } })).rejects.toThrow()
    store.touchCreds()
    await closed
    await store.settled()
    expect([...state.rows.keys()]).toEqual(['session/a.0'])
    expect(await open(credentials).store.keys.get('session', ['a.0'])).toEqual({ 'a.0': { counter: 1 } })
    expect(broken).toEqual([])
  })

  test('that Baileys makes in place affect only its own copy of the value', async () => {
    const { credentials } = memory()
    const { store } = open(credentials)
    await store.keys.set({ 'sender-key-memory': { g: { one: true } }, 'device-list': { u: ['0'] } })
    const memoryOf = async () => (await store.keys.get('sender-key-memory', ['g']))['g']
    Object.assign((await memoryOf()) as object, { two: true })
    ;(await store.keys.get('device-list', ['u']))['u']?.push('9')
    expect(await memoryOf()).toEqual({ one: true })
    expect((await store.keys.get('device-list', ['u']))['u']).toEqual(['0'])
  })

  test('in memory do not retain the buffer pool', async () => {
    const { store } = open(memory().credentials)
    const bytes = Buffer.from('a slice of the pool')
    expect(bytes.buffer.byteLength).toBeGreaterThan(bytes.length)
    await store.keys.set({ 'identity-key': { a: bytes }, tctoken: { a: { token: bytes, timestamp: '1' } } })
    await store.settled()
    const key = (await store.keys.get('identity-key', ['a']))['a']
    const row = (await store.keys.get('tctoken', ['a']))['a']
    expect(row?.timestamp).toBe('1')
    for (const kept of [key, row?.token]) {
      expect(kept).toEqual(bytes)
      expect(kept?.buffer.byteLength).toBe(bytes.length)
    }
  })
})

describe('the journal', () => {
  const ciphertext = (seq: number) => Buffer.from(`ciphertext ${seq}`)
  const plaintext = (seq: number) => Buffer.from(`plaintext ${seq}`)

  test('returns plaintexts from before a restart, and has a bounded number of rows', async () => {
    const { state, credentials } = memory()
    const { store } = open(credentials)
    const journal = new Journal(store)
    await journal.find(ciphertext(0))
    for (let seq = 0; seq < 300; seq += 1) {
      await store.keys.set(journal.entryFor(ciphertext(seq), plaintext(seq)))
    }
    await store.settled()
    expect(state.rows.size).toBeLessThan(200)
    const after = new Journal(open(credentials).store)
    expect(await after.find(ciphertext(299))).toEqual(plaintext(299))
    expect(await after.find(ciphertext(200))).toEqual(plaintext(200))
    expect(await after.find(ciphertext(0))).toBeUndefined()
  })

  test('keeps an unrecorded message until it is delivered again, after any number of recorded messages', async () => {
    const { credentials } = memory()
    for (let restart = 0; restart < 3; restart += 1) {
      const { store } = open(credentials)
      const journal = new Journal(store)
      expect(await journal.find(ciphertext(-1))).toEqual(restart === 0 ? undefined : plaintext(-1))
      const inDoubt = restart === 0 ? journal.entryFor(ciphertext(-1), plaintext(-1)) : undefined
      if (inDoubt) await store.keys.set(inDoubt)
      for (let n = restart * 300; n < (restart + 1) * 300; n += 1) {
        await store.keys.set(journal.entryFor(ciphertext(n), plaintext(n)))
        journal.recorded(ciphertext(n))
      }
      await store.settled()
      expect(await journal.find(ciphertext(-1))).toEqual(plaintext(-1))
    }
  })

  test('retains no more memory than the plaintext', async () => {
    const journal = new Journal(open(memory().credentials).store)
    await journal.find(ciphertext(0))
    journal.entryFor(ciphertext(0), plaintext(0))
    const kept = await journal.find(ciphertext(0))
    expect(kept).toEqual(plaintext(0))
    expect(kept?.buffer.byteLength).toBe(plaintext(0).length)
  })
})

function reviveBuffers(_key: string, value: { type?: unknown; data?: unknown } | null): unknown {
  return value?.type === 'Buffer' ? Buffer.from(value.data as number[]) : value
}
