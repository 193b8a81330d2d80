import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { MAX_API_KEYS } from '../../../src/domain/access.ts'
import { newKeyId } from '../../../src/domain/ids.ts'
import type { NewApiKey } from '../../../src/store/api-keys/api-keys.ts'
import type { Store } from '../../../src/store/store.ts'
import { hex, newInstance, withStore } from '../fixture.ts'
import type { CreateHarness } from '../harness.ts'

export function newKey(instanceId: string, changes: Partial<NewApiKey> = {}): NewApiKey {
  return {
    id: newKeyId(),
    instanceId,
    name: 'Shop',
    digest: randomBytes(32),
    prefix: 'pmb_abcdef',
    scopes: ['send', 'read'],
    expiresAt: null,
    ...changes,
  }
}

async function create(store: Store, changes: Partial<NewApiKey> = {}) {
  const instance = newInstance()
  await store.instances.create(instance, 0)
  const key = newKey(instance.id, changes)
  expect(await store.apiKeys.create(key, 5)).toMatchObject({ id: key.id })
  return { instance, key, admit: () => store.admission.admit(hex(key.digest)) }
}

export function apiKeysContract(createHarness: CreateHarness): void {
  describe('API keys', () => {
    const context = withStore(createHarness)

    test('admit to their instance with their scopes, while the token admits without a key', async () => {
      const { store } = context
      const { instance, key, admit } = await create(store)
      expect(await admit()).toMatchObject({
        instanceId: instance.id,
        key: { id: key.id, name: key.name, scopes: ['send', 'read'] },
        calls: 1,
        limit: 100,
      })
      expect(await store.admission.admit(hex(instance.tokenDigest))).toMatchObject({ key: null, calls: 2 })
    })

    test('share the rate limit of their instance, even when they call at the same time', async () => {
      const { store } = context
      const { instance, key } = await create(store)
      const other = newKey(instance.id)
      await store.apiKeys.create(other, 6)
      const stranger = await create(store)
      const digests = [instance.tokenDigest, key.digest, other.digest, stranger.key.digest]
      const all = await Promise.all(
        Array.from({ length: 200 }, (_, n) => store.admission.admit(hex(digests[n % digests.length]!))),
      )
      const own = all.filter(admitted => admitted!.instanceId === instance.id)
      const within = own.filter(admitted => admitted!.calls <= admitted!.limit)
      expect([own.length, within.length, new Set(within.map(admitted => admitted!.calls)).size]).toEqual([
        150, 100, 100,
      ])
      expect(await stranger.admit()).toMatchObject({ calls: 51, limit: 100 })
    })

    test('are refused once they are revoked or expired, or the instance is deleted; a new token leaves them', async () => {
      const { store } = context
      const revoked = await create(store)
      expect(await revoked.admit()).not.toBeNull()
      await store.instances.replaceToken(revoked.instance.id, randomBytes(32))
      expect(await revoked.admit()).not.toBeNull()
      expect(await store.apiKeys.revoke(revoked.instance.id, revoked.key.id)).toBe(true)
      expect(await revoked.admit()).toBeNull()
      expect(await store.apiKeys.revoke(revoked.instance.id, revoked.key.id)).toBe(false)

      const expired = await create(store, { expiresAt: Date.now() - 1 })
      expect(await expired.admit()).toBeNull()
      const expiring = await create(store, { expiresAt: Date.now() + 3_600_000 })
      expect(await expiring.admit()).not.toBeNull()

      const deleted = await create(store)
      expect(await deleted.admit()).not.toBeNull()
      await store.instances.delete(deleted.instance.id, 0)
      expect(await deleted.admit()).toBeNull()
      expect(await store.apiKeys.list(deleted.instance.id)).toBeNull()
      expect(await store.apiKeys.create(newKey(deleted.instance.id), 0)).toBeNull()
    })

    test("cannot be revoked in another instance's name", async () => {
      const { store } = context
      const one = await create(store)
      const other = await create(store)
      expect(await store.apiKeys.revoke(other.instance.id, one.key.id)).toBe(false)
      expect(await one.admit()).not.toBeNull()
    })

    test('are listed without their digests, newest first; at most 50 of an instance', async () => {
      const { store } = context
      const { instance, key } = await create(store)
      const creations = Array.from({ length: MAX_API_KEYS }, (_, n) => store.apiKeys.create(newKey(instance.id), 6 + n))
      const outcomes = await Promise.all(creations)
      expect(outcomes.filter(outcome => outcome === 'full')).toHaveLength(1)
      const listed = (await store.apiKeys.list(instance.id))!
      expect(listed).toHaveLength(MAX_API_KEYS)
      expect(listed.at(-1)).toEqual({
        id: key.id,
        name: 'Shop',
        prefix: 'pmb_abcdef',
        scopes: ['send', 'read'],
        createdAt: 5,
        expiresAt: null,
        lastUsedAt: null,
      })
      expect(listed.map(({ createdAt }) => createdAt)).toEqual(
        listed.map(({ createdAt }) => createdAt).toSorted((a, b) => b - a),
      )
      expect(await store.apiKeys.list((await create(store)).instance.id)).toHaveLength(1)
    })

    test('remember their last use over a restart, and an unused key has none', async () => {
      const harness = await createHarness()
      try {
        const first = await harness.open()
        const { instance, key, admit } = await create(first)
        const unused = newKey(instance.id)
        await first.apiKeys.create(unused, 6)
        const before = Date.now()
        await Promise.all([admit(), admit()])
        expect((await first.apiKeys.list(instance.id))!.map(({ lastUsedAt }) => lastUsedAt)).toEqual([null, null])
        await first.close()
        const second = await harness.open()
        const uses = async () =>
          (await second.apiKeys.list(instance.id))!.find(({ id }) => id === key.id)!.lastUsedAt ?? 0
        expect(await uses()).toBeGreaterThanOrEqual(before)
        expect(await uses()).toBeLessThanOrEqual(Date.now())
        expect((await second.apiKeys.list(instance.id))![0]!.lastUsedAt).toBeNull()
      } finally {
        await harness.dispose()
      }
    })
  })
}
