import { describe, expect, test } from 'vitest'
import { newMessageId } from '../../../../src/domain/ids.ts'
import { messageFailure } from '../../../../src/domain/message.ts'
import { NO_PACE, type Pace } from '../../../../src/domain/pace.ts'
import { LeaseLost } from '../../../../src/store/errors.ts'
import type { Lease } from '../../../../src/store/leases/leases.ts'
import { createConnected, incoming, newMessage, withStore } from '../../fixture.ts'
import type { CreateHarness } from '../../harness.ts'

const NOON = Date.parse('2026-11-24T12:00:00Z')
const MIDNIGHT = Date.parse('2026-11-25T00:00:00Z')
const MINUTE_MS = 60_000

export function paceContract(createHarness: CreateHarness): void {
  describe('the pace of an instance', () => {
    const context = withStore(createHarness)

    async function open(pace: Partial<Pace>): Promise<Lease> {
      const lease = await createConnected(context.store)
      expect(await context.store.paces.set(lease.instanceId, { ...NO_PACE, ...pace }, NOON)).toBe(true)
      return lease
    }

    const take = (lease: Lease, recipient: string | null, now = NOON, id = newMessageId(NOON)) =>
      context.store.paces.take(lease, id, recipient, now)

    test('grants the new recipients of a day once, even if messages take their turn again or concurrently', async () => {
      const lease = await open({ newRecipientsPerDay: 2 })
      const id = newMessageId(NOON)
      for (let time = 0; time < 3; time += 1) expect(await take(lease, 'ana', NOON, id)).toEqual({ kind: 'granted' })
      const outcomes = await Promise.all(['bia', 'cai', 'dea', 'bia'].map(name => take(lease, name)))
      const waits = { kind: 'waits', for: 'new_recipients', until: MIDNIGHT }
      expect(outcomes).toEqual([{ kind: 'granted' }, waits, waits, { kind: 'granted' }])
      expect(await take(lease, null)).toEqual({ kind: 'granted' })
      expect(await take(lease, 'cai', MIDNIGHT - 1)).toEqual(waits)
      expect(await take(lease, 'cai', MIDNIGHT)).toEqual({ kind: 'granted' })
      const state = await context.store.paces.find(lease.instanceId)
      expect(state?.newRecipientsAt).toBe(MIDNIGHT)
    })

    test('grants the messages of a minute once, whatever the clock does', async () => {
      const lease = await open({ perMinute: 2 })
      const id = newMessageId(NOON)
      expect(await take(lease, null, NOON, id)).toEqual({ kind: 'granted' })
      expect(await take(lease, 'ana', NOON + 10_000)).toEqual({ kind: 'granted' })
      const waits = { kind: 'waits', for: 'all', until: NOON + MINUTE_MS }
      expect(await take(lease, null, NOON + 20_000)).toEqual(waits)
      expect(await take(lease, null, NOON + 20_000, id)).toEqual({ kind: 'granted' })
      expect(await take(lease, null, NOON + MINUTE_MS)).toEqual({ kind: 'granted' })
      expect(await take(lease, null, NOON + MINUTE_MS)).toEqual({ ...waits, until: NOON + 70_000 })
      expect(await take(lease, null, NOON)).toEqual({ ...waits, until: NOON + MINUTE_MS })
    })

    test('makes nothing wait for more than a minute after the clock was set back, however often it is asked', async () => {
      const lease = await open({ perMinute: 1 })
      const hourLater = NOON + 60 * MINUTE_MS
      expect(await take(lease, null, hourLater)).toEqual({ kind: 'granted' })
      expect(await take(lease, null, hourLater)).toMatchObject({ kind: 'waits' })
      const waits = { kind: 'waits', for: 'all', until: NOON + MINUTE_MS }
      expect(await take(lease, null, NOON)).toEqual(waits)
      expect(await take(lease, null, NOON + 30_000)).toEqual(waits)
      expect(await take(lease, null, NOON + MINUTE_MS)).toEqual({ kind: 'granted' })
    })

    test('decides again about a message that was not sent within a minute of its turn, or before the quiet hours', async () => {
      const lease = await open({ perMinute: 1, quietHours: { from: 13 * 60, until: 14 * 60 } })
      const id = newMessageId(NOON)
      const later = (seconds: number, message?: typeof id) => take(lease, 'ana', NOON + seconds * 1_000, message)
      const waitsUntil = (seconds: number) => ({ kind: 'waits', for: 'all', until: NOON + seconds * 1_000 })
      expect(await later(0, id)).toEqual({ kind: 'granted' })
      expect(await later(70)).toEqual({ kind: 'granted' })
      expect(await later(75, id)).toEqual(waitsUntil(130))
      expect(await later(130, id)).toEqual({ kind: 'granted' })
      expect(await later(135)).toEqual(waitsUntil(190))
      expect(await later(3_590, id)).toEqual({ kind: 'granted' })
      expect(await later(3_610, id)).toEqual(waitsUntil(7_200))
    })

    test('grants no turn to a message that has failed', async () => {
      const lease = await open({ perMinute: 1 })
      const message = newMessage(lease.instanceId)
      await context.store.messages.accept(message, NOON)
      await context.store.messages.recordFailure(lease, message, messageFailure('cancelled'), NOON)
      expect(await take(lease, null, NOON, message.id)).toEqual({ kind: 'gone' })
      expect(await take(lease, null)).toEqual({ kind: 'granted' })
    })

    test('makes everything wait for the end of the quiet hours, and nothing once it is switched off', async () => {
      const lease = await open({ quietHours: { from: 11 * 60, until: 13 * 60 } })
      const until = NOON + 60 * MINUTE_MS
      expect(await take(lease, null)).toEqual({ kind: 'waits', for: 'all', until })
      await context.store.paces.set(lease.instanceId, NO_PACE, NOON)
      expect(await take(lease, null)).toEqual({ kind: 'granted' })
      // Messages had to wait until now, so their age counts from this moment.
      expect((await context.store.paces.find(lease.instanceId))?.opensAt).toBe(NOON)
    })

    test('does not hide the other reasons why queued messages wait, which one call reads for many', async () => {
      const { instanceId } = await open({ perMinute: 1 })
      const { messages, paces } = context.store
      const accept = async (to: string, notBefore?: number) => {
        const message = newMessage(instanceId, { to, ...(notBefore !== undefined && { notBefore }) })
        expect(await messages.accept(message, NOON)).toMatchObject({ kind: 'accepted' })
        return message.id
      }
      const ids = [await accept('5511987650001'), await accept('5511987650001'), await accept('5511987650002')]
      const scheduled = await accept('5511987650003', NOON + MINUTE_MS)
      const waits = await paces.findWaits(instanceId, [...ids, scheduled, newMessageId(NOON)], NOON)
      expect(Object.fromEntries(waits)).toEqual({
        [ids[1]!]: { waitingFor: 'order', notBefore: null },
        [scheduled]: { waitingFor: 'schedule', notBefore: NOON + MINUTE_MS },
      })
      expect(await paces.findWaits(instanceId, [], NOON)).toEqual(new Map())
    })

    test('says that a text to a stranger waits, and not one to a contact under another address', async () => {
      const lease = await open({ newRecipientsPerDay: 1 })
      const { messages, paces, events } = context.store
      const lid = '990000007654321@lid'
      await events.storeIncoming(lease, incoming({ from: '551187650001', lid }), NOON)
      for (const name of ['ana', 'bia']) await take(lease, name)
      const accept = async (to: string) => {
        const message = newMessage(lease.instanceId, { to })
        await messages.accept(message, NOON)
        return message.id
      }
      const stranger = await accept('5511987650002')
      const ids = [await accept(lid), await accept('5511987650001'), stranger]
      expect(Object.fromEntries(await paces.findWaits(lease.instanceId, ids, NOON))).toEqual({
        [stranger]: { waitingFor: 'pace', notBefore: MIDNIGHT },
      })
    })

    test('grants turns to the owner of the lease only, and cannot be set for a deleted instance', async () => {
      const lease = await open({ perMinute: 1 })
      await expect(take({ ...lease, epoch: lease.epoch - 1 }, null)).rejects.toThrow(LeaseLost)
      expect(await take(lease, null)).toEqual({ kind: 'granted' })
      await context.store.instances.delete(lease.instanceId, NOON)
      expect(await context.store.paces.set(lease.instanceId, NO_PACE, NOON)).toBe(false)
    })
  })
}
