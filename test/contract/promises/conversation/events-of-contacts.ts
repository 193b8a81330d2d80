import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { IncomingChange } from '../../../../src/domain/incoming-message.ts'
import type { Lease } from '../../../../src/store/leases/leases.ts'
import type { Store } from '../../../../src/store/store.ts'
import { createConnected, deliverAll, incoming } from '../../fixture.ts'
import type { CreateHarness, StoreHarness } from '../../harness.ts'

const THEM = '5511987654321'
const LID = '123456789012345@lid'
const OTHER = '5511911112222'
const GROUP = '120363041234567890@g.us'
const DAY_MS = 86_400_000

export function eventsOfContactsContract(createHarness: CreateHarness): void {
  describe('events without a message of the contact', () => {
    let harness: StoreHarness
    let store: Store
    let lease: Lease
    beforeEach(async () => {
      harness = await createHarness()
      store = await harness.open()
      lease = await createConnected(store)
      await store.endpoints.change(lease.instanceId, 'endpoint_default', { events: ['*'] })
    })
    afterEach(() => harness.dispose())

    const change = (id: string, now: number, changes: Partial<IncomingChange>) => {
      const { from = THEM, group } = changes
      const about = { id, from, chat: group ?? from, lid: null, username: null, sentAt: now }
      const edit = { change: 'edit', target: 'unknown', ofOwn: false, text: 'a late edit' } as const
      return store.events.recordChange(lease, { ...about, ...edit, ...changes }, now)
    }
    const bodies = async () => (await harness.execute('select body from events')).map(({ body }) => String(body)).join()
    async function exported(contact: string): Promise<string[]> {
      const ids: string[] = []
      const data = await store.retention.openContact(lease.instanceId, contact, Date.now())
      for await (const { id } of data.events()) ids.push(id)
      return ids
    }

    test.each([THEM, LID])('are exported once each and erased when they are posted, named as %s', async contact => {
      const { instanceId } = lease
      const now = Date.now()
      const long = now - 40 * DAY_MS
      // Erased by age before the edit of it, which is a day younger.
      await store.events.storeIncoming(lease, incoming({ id: 'old', from: THEM, lid: LID, text: 'old' }), long)
      await change('E1', long + DAY_MS, { target: 'old', sentAt: long + DAY_MS })
      await deliverAll(store, lease)
      while ((await store.retention.step(long + DAY_MS / 2, now)) > 0);
      await store.events.storeIncoming(lease, incoming({ id: 'own', from: THEM, lid: LID, group: GROUP }), now)
      await store.events.storeIncoming(lease, incoming({ id: 'other', from: OTHER, group: GROUP }), now)
      await change('E2', now, {})
      await change('E3', now, { change: 'delete', target: 'unknown too' })
      await change('E4', now, { group: GROUP, addressing: 'lid', from: '123456789012345', lid: LID })
      await change('E5', now, { group: GROUP, target: 'own', lid: LID })
      const author = { from: OTHER, lid: null }
      await change('E6', now, {
        group: GROUP,
        target: 'other',
        change: 'delete',
        byAdmin: true,
        author,
        text: 'by them',
      })
      await change('E7', now, { from: OTHER, text: 'by another' })
      const found = await exported(contact)
      expect(found).toHaveLength(7)
      expect(new Set(found).size).toBe(7)

      // Nothing is erased that is still being posted.
      const nothing = { messages: 0, events: 1, files: 0 }
      expect(await store.retention.eraseContact(instanceId, contact, now)).toMatchObject(nothing)
      expect(await bodies()).toContain(THEM)
      await deliverAll(store, lease)
      expect(await store.retention.eraseContact(instanceId, contact, now)).toMatchObject({ events: 6, kept: 0 })
      const left = await bodies()
      expect(left).not.toMatch(new RegExp(`${THEM}|${LID}|a late edit|by them`))
      expect(left).toContain('by another')
      expect(await exported(contact)).toEqual([])
      expect(await store.retention.eraseContact(instanceId, contact, now)).toMatchObject({ events: 0, kept: 0 })
      // They are not recorded a second time.
      expect(await change('E2', now, {})).toBe('duplicate')
    })
  })
}
