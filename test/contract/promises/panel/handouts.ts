import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { newAccountId, newHandoutId } from '../../../../src/domain/ids.ts'
import { type HandoutKey, MAX_HANDOUTS, type NewHandout } from '../../../../src/store/handouts/handouts.ts'
import type { Store } from '../../../../src/store/store.ts'
import { createConnected, createOwned, newInstance, watchHints, withStore } from '../../fixture.ts'
import type { CreateHarness } from '../../harness.ts'

const HOUR_MS = 60 * 60_000
const PHONE = '5511987654321'

function newHandout(instanceId: string, changes: Partial<NewHandout> = {}): NewHandout {
  return {
    id: newHandoutId(),
    instanceId,
    title: null,
    returnUrl: null,
    digest: randomBytes(32),
    lastsMs: HOUR_MS,
    createdBy: null,
    ...changes,
  }
}

async function handOut(store: Store, instanceId: string, changes: Partial<NewHandout> = {}) {
  const handout = newHandout(instanceId, changes)
  expect(await store.handouts.create(handout, 5)).toMatchObject({ id: handout.id, openedAt: null, usedAt: null })
  const key: HandoutKey = { digest: handout.digest, browser: randomBytes(32) }
  return { id: handout.id, key, elsewhere: { ...key, browser: randomBytes(32) } }
}

export function handoutsContract(createHarness: CreateHarness): void {
  describe('linking links', () => {
    const context = withStore(createHarness)

    test('reading changes nothing; a request binds the link to one browser', async () => {
      const { store } = context
      const { id } = await store.instances.create(newInstance(), 0)
      const { key, elsewhere } = await handOut(store, id)
      expect(await store.handouts.find(key)).toMatchObject({ kind: 'found', handout: { openedAt: null } })
      expect(await store.handouts.find(elsewhere)).toMatchObject({ kind: 'found' })
      expect(await store.handouts.find({ ...key, digest: randomBytes(32) })).toEqual({ kind: 'none' })
      const hints = watchHints(store, id)
      expect(await store.handouts.request(key, null)).toEqual({ kind: 'requested' })
      expect(hints).toEqual(expect.arrayContaining(['goal', 'connection']))
      expect(await store.connections.find(id)).toMatchObject({ goal: 'online', goalVersion: 1, pairingPhone: null })
      expect(await store.handouts.find(key)).toMatchObject({ handout: { openedAt: expect.any(Number) } })
      expect(await store.handouts.find(elsewhere)).toEqual({ kind: 'in_use' })
      expect(await store.handouts.request(elsewhere, null)).toEqual({ kind: 'in_use' })
      expect((await store.connections.find(id))?.goalVersion).toBe(1)
    })

    test('a link works only while the account that created it may create links of its instance', async () => {
      const { store } = context
      const { id } = await store.instances.create(newInstance(), 0)
      const account = { id: newAccountId(), name: newAccountId(), role: 'operator' as const, instances: [id] }
      await store.accounts.create(account, { digest: randomBytes(32), lastsMs: HOUR_MS, invitedBy: null }, 0)
      const { key } = await handOut(store, id, { createdBy: account.id })
      const isUsable = async () => {
        const found = await store.handouts.find(key)
        const requested = await store.handouts.request(key, null)
        expect(requested.kind !== 'none').toBe(found.kind === 'found')
        return found.kind === 'found'
      }
      expect(await isUsable()).toBe(true)
      for (const [role, instances, expected] of [
        ['operator', ['inst_other'], false],
        ['operator', null, true],
        ['viewer', null, false],
        ['owner', null, true],
      ] as const) {
        await store.accounts.change(account.id, { role, instances })
        expect([role, instances, await isUsable()]).toEqual([role, instances, expected])
      }
      await store.accounts.change(account.id, { role: 'operator', instances: null })
      await store.accounts.remove(account.id)
      expect(await isUsable()).toBe(false)
    })

    test('of many browsers that open a link at the same time, one succeeds', async () => {
      const { store } = context
      const { id } = await store.instances.create(newInstance(), 0)
      const { key } = await handOut(store, id)
      const browsers = Array.from({ length: 8 }, () => ({ ...key, browser: randomBytes(32) }))
      const outcomes = await Promise.all(browsers.map(browser => store.handouts.request(browser, null)))
      expect(outcomes.filter(({ kind }) => kind === 'requested')).toHaveLength(1)
      expect(outcomes.filter(({ kind }) => kind === 'in_use')).toHaveLength(7)
    })

    test('a QR code that is shown is not requested again; another request has to wait', async () => {
      const { store } = context
      const lease = await createOwned(store)
      const { key } = await handOut(store, lease.instanceId)
      await store.handouts.request(key, null)
      expect(await store.handouts.request(key, PHONE)).toMatchObject({ kind: 'too_soon', waitMs: expect.any(Number) })
      await store.connections.record(lease, { state: 'linking', qr: '2@abc' }, 10)
      const hints = watchHints(store, lease.instanceId)
      expect(await store.handouts.request(key, null)).toEqual({ kind: 'under_way' })
      expect(hints).toEqual([])
      expect((await store.connections.find(lease.instanceId))?.goalVersion).toBe(1)
    })

    test('after the clock was set back, another code can be requested at once', async () => {
      const { harness, store } = context
      const { id } = await store.instances.create(newInstance(), 0)
      const handout = await handOut(store, id)
      await store.handouts.request(handout.key, null)
      await harness.execute(`update handouts set requested_at = requested_at + 60000 where id = '${handout.id}'`)
      expect(await store.handouts.request(handout.key, PHONE)).toEqual({ kind: 'requested' })
      expect(await store.handouts.request(handout.key, PHONE)).toMatchObject({ kind: 'too_soon' })
    })

    test('a QR code that somebody else requested is shown by a link once it is bound to a browser', async () => {
      const { store } = context
      const lease = await createOwned(store)
      const { key, elsewhere } = await handOut(store, lease.instanceId)
      await store.connections.requestConnect(lease.instanceId, null)
      await store.connections.record(lease, { state: 'linking', qr: '2@abc' }, 10)
      expect(await store.handouts.request(key, null)).toEqual({ kind: 'requested' })
      expect(await store.handouts.find(elsewhere)).toEqual({ kind: 'in_use' })
      expect(await store.handouts.request(key, null)).toEqual({ kind: 'under_way' })
      expect((await store.connections.find(lease.instanceId))?.goalVersion).toBe(1)
    })

    test('a linked number ends every open link in the commit that records it', async () => {
      const { store } = context
      const lease = await createOwned(store)
      const used = await handOut(store, lease.instanceId)
      const unopened = await handOut(store, lease.instanceId)
      await store.handouts.request(used.key, PHONE)
      await store.connections.record(lease, { state: 'connected', phone: PHONE }, 10)
      expect(await store.handouts.find(used.key)).toMatchObject({ handout: { usedAt: expect.any(Number) } })
      expect(await store.handouts.request(used.key, null)).toEqual({ kind: 'linked' })
      expect(await store.handouts.find(used.elsewhere)).toEqual({ kind: 'none' })
      expect(await store.handouts.find(unopened.key)).toEqual({ kind: 'none' })
      await store.connections.record(lease, { state: 'logged_out', phone: null }, 20)
      expect(await store.handouts.request(used.key, null)).toEqual({ kind: 'linked' })
      expect(await store.handouts.request(unopened.key, null)).toEqual({ kind: 'none' })
    })

    test('no link is created for a linked number, none for a deleted instance, and at most ten', async () => {
      const { store } = context
      const { instanceId } = await createConnected(store)
      expect(await store.handouts.create(newHandout(instanceId), 5)).toBe('linked')
      expect(await store.handouts.create(newHandout('inst_absent'), 5)).toBeNull()
      expect(await store.handouts.list('inst_absent')).toBeNull()
      const { id } = await store.instances.create(newInstance(), 0)
      for (let count = 0; count < MAX_HANDOUTS; count += 1) await handOut(store, id)
      expect(await store.handouts.create(newHandout(id), 5)).toBe('full')
      expect(await store.handouts.list(id)).toHaveLength(MAX_HANDOUTS)
    })

    test('a revoked link ends, and with it the request that it made last', async () => {
      const { store } = context
      const lease = await createOwned(store)
      const { id, key } = await handOut(store, lease.instanceId)
      await store.handouts.request(key, null)
      await store.connections.record(lease, { state: 'linking', qr: '2@abc' }, 10)
      expect(await store.handouts.revoke(lease.instanceId, id)).toBe(true)
      expect(await store.connections.find(lease.instanceId)).toMatchObject({ goal: 'logged_out', goalVersion: 2 })
      expect(await store.handouts.find(key)).toEqual({ kind: 'none' })
      expect(await store.handouts.revoke(lease.instanceId, id)).toBe(false)
    })

    test('the request of a link ends when the link expires, unless a number is linked or somebody else made a later one', async () => {
      const { store, harness } = context
      const leases = [await createOwned(store), await createOwned(store), await createOwned(store)] as const
      for (const lease of leases) {
        await store.handouts.request((await handOut(store, lease.instanceId)).key, null)
        await store.connections.record(lease, { state: 'linking', qr: '2@abc' }, 10)
      }
      const [shown, repeated, linked] = leases.map(({ instanceId }) => instanceId) as [string, string, string]
      await store.connections.requestConnect(repeated, null)
      await store.connections.record(leases[2], { state: 'connecting' }, 11)
      await store.handouts.endExpired()
      expect(await store.connections.find(shown)).toMatchObject({ goal: 'online', goalVersion: 1 })
      await harness.execute('update handouts set expires_at = 0')
      const hints = watchHints(store, shown)
      await store.handouts.endExpired()
      expect(await store.connections.find(shown)).toMatchObject({ goal: 'logged_out', goalVersion: 2 })
      expect(hints).toContain('goal')
      await store.handouts.endExpired()
      expect(await store.connections.find(shown)).toMatchObject({ goal: 'logged_out', goalVersion: 2 })
      expect(await store.connections.find(repeated)).toMatchObject({ goal: 'online', goalVersion: 2 })
      expect(await store.connections.find(linked)).toMatchObject({ goal: 'online', goalVersion: 1 })
    })

    test('a link shows three pairing codes; a QR code can be requested afterwards', async () => {
      const { store, harness } = context
      const { id } = await store.instances.create(newInstance(), 0)
      const { key } = await handOut(store, id)
      for (let left = 2; left >= 0; left -= 1) {
        expect(await store.handouts.request(key, PHONE)).toEqual({ kind: 'requested' })
        expect(await store.handouts.find(key)).toMatchObject({ handout: { pairingCodesLeft: left } })
        await harness.execute('update handouts set requested_at = 0')
      }
      const { goalVersion } = (await store.connections.find(id))!
      expect(await store.handouts.request(key, PHONE)).toEqual({ kind: 'codes_spent' })
      expect((await store.connections.find(id))?.goalVersion).toBe(goalVersion)
      expect(await store.handouts.request(key, null)).toEqual({ kind: 'requested' })
    })

    test('revoking a link neither ends the request of somebody else nor unlinks a number', async () => {
      const { store } = context
      const lease = await createOwned(store)
      const { instanceId } = lease
      const [first, second] = [await handOut(store, instanceId), await handOut(store, instanceId)]
      await store.handouts.request(first.key, null)
      await store.connections.requestConnect(instanceId, null)
      await store.handouts.revoke(instanceId, first.id)
      expect(await store.connections.find(instanceId)).toMatchObject({ goal: 'online', goalVersion: 2 })
      await store.handouts.request(second.key, PHONE)
      await store.connections.record(lease, { state: 'connected', phone: PHONE }, 10)
      await store.handouts.revoke(instanceId, second.id)
      expect(await store.connections.find(instanceId)).toMatchObject({ goal: 'online', phone: PHONE })
    })

    test('an expired link is not found and can request nothing', async () => {
      const { store } = context
      const { id } = await store.instances.create(newInstance(), 0)
      const { key } = await handOut(store, id, { lastsMs: 0 })
      expect(await store.handouts.find(key)).toEqual({ kind: 'none' })
      expect(await store.handouts.request(key, null)).toEqual({ kind: 'none' })
      expect(await store.handouts.list(id)).toHaveLength(1)
    })
  })
}
