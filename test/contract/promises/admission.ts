import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { createOwned, hex, newInstance, withStore } from '../fixture.ts'
import type { CreateHarness } from '../harness.ts'

export function admissionContract(createHarness: CreateHarness): void {
  describe('admission', () => {
    const context = withStore(createHarness)

    test('counts a call against the instance of its token and returns the number of calls', async () => {
      const { store } = context
      const instance = newInstance()
      await store.instances.create(instance, 0)
      const first = await store.admission.admit(hex(instance.tokenDigest))
      expect(first).toMatchObject({ instanceId: instance.id, calls: 1, limit: 100 })
      expect(first!.resetMs).toBeGreaterThan(55_000)
      expect(first!.resetMs).toBeLessThanOrEqual(60_000)
      expect(await store.admission.admit(hex(instance.tokenDigest))).toMatchObject({ calls: 2 })
    })

    test('admits exactly the limit of any number of concurrent calls', async () => {
      const { store } = context
      const instance = newInstance()
      await store.instances.create(instance, 0)
      const all = await Promise.all(Array.from({ length: 150 }, () => store.admission.admit(hex(instance.tokenDigest))))
      const within = all.filter(admitted => admitted!.calls <= admitted!.limit)
      expect([within.length, new Set(within.map(admitted => admitted!.calls)).size]).toEqual([100, 100])
      expect(await store.admission.admit(hex(instance.tokenDigest))).toMatchObject({ calls: 151, limit: 100 })
    })

    test('a call after the clock was set back is not refused by a window that was opened before', async () => {
      const { harness, store } = context
      const instance = newInstance()
      await store.instances.create(instance, 0)
      const admit = () => store.admission.admit(hex(instance.tokenDigest))
      await Promise.all(Array.from({ length: 100 }, admit))
      expect(await admit()).toMatchObject({ calls: 101, limit: 100 })
      // SQLite counts in memory, on the monotonic clock.
      if (harness.kind === 'sqlite') return
      await harness.execute(`update rate_windows set opened_at = opened_at + 5000 where instance_id = '${instance.id}'`)
      const refused = await admit()
      expect(refused).toMatchObject({ calls: 102, limit: 100 })
      expect(refused!.resetMs).toBeLessThanOrEqual(60_000)
      await harness.execute(
        `update rate_windows set opened_at = opened_at + 7200000 where instance_id = '${instance.id}'`,
      )
      expect(await admit()).toMatchObject({ calls: 1, limit: 100 })
    })

    test('counts each instance separately', async () => {
      const { store } = context
      const [one, other] = [newInstance(), newInstance()]
      await store.instances.create(one, 0)
      await store.instances.create(other, 0)
      await Promise.all([1, 2, 3].map(() => store.admission.admit(hex(one.tokenDigest))))
      expect(await store.admission.admit(hex(other.tokenDigest))).toMatchObject({
        instanceId: other.id,
        calls: 1,
        limit: 100,
      })
    })

    test('rejects a token that was never issued, was replaced, or belongs to a deleted instance', async () => {
      const { store } = context
      expect(await store.admission.admit(hex(randomBytes(32)))).toBeNull()
      const instance = newInstance()
      await store.instances.create(instance, 0)
      await store.admission.admit(hex(instance.tokenDigest))
      const replacement = randomBytes(32)
      expect(await store.instances.replaceToken(instance.id, replacement)).toBe(true)
      expect(await store.admission.admit(hex(instance.tokenDigest))).toBeNull()
      expect(await store.admission.admit(hex(replacement))).toMatchObject({
        instanceId: instance.id,
        calls: 2,
        limit: 100,
      })
      await store.instances.delete(instance.id, 0)
      expect(await store.admission.admit(hex(replacement))).toBeNull()
      expect(await store.instances.replaceToken(instance.id, randomBytes(32))).toBe(false)
    })

    test('stores tokens only as digests, and secrets encrypted', async () => {
      const { harness, store } = context
      const lease = await createOwned(store, { webhookSecret: 'whsec_plain-as-day' })
      const value = Buffer.from('a private key, plain as day')
      await store.credentials.set(lease, [{ type: 'creds', id: 'main', value }])
      for (const table of ['instances', 'credentials']) {
        for (const row of await harness.execute(`select * from ${table}`)) {
          for (const column of Object.values(row)) {
            expect(Buffer.isBuffer(column) ? column.toString('latin1') : String(column)).not.toContain('plain')
          }
        }
      }
    })
  })
}
