import { describe, expect, test } from 'vitest'
import type { GroupMember, GroupNotice } from '../../../../src/domain/recipients/group.ts'
import { createConnected, withStore } from '../../fixture.ts'
import type { CreateHarness } from '../../harness.ts'
import { describing } from './groups.ts'

const SELF = { phone: '5511900000000', lid: '1@lid' }
const own: GroupMember = { ...SELF, role: 'member' }

export function joinedGroupsContract(createHarness: CreateHarness): void {
  describe('a group that the account has left and joined again', () => {
    const context = withStore(createHarness)

    async function setUp() {
      const { directory, events } = context.store
      const lease = await createConnected(context.store)
      const group = describing()
      const answer = (askedAt: number, now = askedAt) =>
        directory.recordGroups(lease, [group], { self: SELF, askedAt, now, reason: 'queried' })
      await answer(1)
      return {
        answer,
        deny: (askedAt: number, now = askedAt) => directory.recordNoMember(lease, group.id, { askedAt, now }),
        notify: (kind: 'add' | 'remove', now: number, notice: GroupNotice | null = null) =>
          directory.recordGroupChanges(lease, group.id, [{ kind, members: [own] }], { self: SELF, now, notice }),
        due: () => directory.listDueGroups(lease.instanceId),
        reported: async () => {
          const { data } = await events.list(lease.instanceId, { limit: 20 })
          return data.map(({ kind }) => kind).sort()
        },
        list: (askedAt: number, now: number) =>
          directory.recordGroups(lease, [group], { self: SELF, askedAt, now, reason: 'listed' }),
        queriedAt: async () => (await directory.readGroup(lease.instanceId, group.id))?.queriedAt,
        isListed: async () => (await directory.findGroup(lease.instanceId, group.id)) !== null,
      }
    }

    test('is joined once WhatsApp has described it, although the clock was ahead when it was left', async () => {
      const { answer, notify, due, reported, isListed } = await setUp()
      await notify('remove', 12_000)
      expect(await notify('add', 11_000)).toBe('unknown')
      await answer(11_001)
      expect(await isListed()).toBe(true)
      expect(await due()).toEqual([])
      expect(await reported()).toEqual(['group.joined', 'group.left'])
    })

    test('is joined once WhatsApp has described it, although the clock was ahead until it was joined again', async () => {
      const { answer, notify, due, reported, isListed } = await setUp()
      await notify('remove', 12_000)
      await notify('add', 12_001)
      await answer(11_000)
      expect(await isListed()).toBe(true)
      expect(await due()).toEqual([])
      expect(await reported()).toEqual(['group.joined', 'group.left'])
    })

    test('is still unknown if the notice is recorded a second time, because the first outcome was lost', async () => {
      const { notify, due } = await setUp()
      await notify('remove', 12)
      const notice = { id: 'N1', at: 1_700_000_000 }
      expect(await notify('add', 13, notice)).toBe('unknown')
      expect(await notify('add', 14, notice)).toBe('unknown')
      expect(await due()).toMatchObject([{ hasJoined: true }])
    })

    test('and left before WhatsApp described it is not joined by a late answer', async () => {
      const { answer, notify, due, reported, isListed } = await setUp()
      await notify('remove', 12)
      await notify('add', 13)
      await notify('remove', 15)
      await answer(14, 16)
      expect(await isListed()).toBe(false)
      expect(await due()).toEqual([])
      expect(await reported()).toEqual(['group.left'])
    })

    test('is still joined after a late denial', async () => {
      const { answer, deny, notify, due, reported, isListed } = await setUp()
      await deny(2)
      expect(await isListed()).toBe(false)
      await notify('add', 12)
      await deny(11, 13)
      expect(await due()).toMatchObject([{ hasJoined: true }])
      await answer(14)
      await deny(11, 15)
      expect(await isListed()).toBe(true)
      expect(await reported()).toEqual(['group.joined', 'group.left'])
      await deny(16)
      expect(await isListed()).toBe(false)
    })

    test('may be queried at once after a denial that came before an older list was recorded', async () => {
      const { deny, list, queriedAt, isListed } = await setUp()
      await list(2, 4)
      await deny(3, 5)
      expect(await isListed()).toBe(true)
      expect(await queriedAt()).toBe(0)
      await deny(6)
      expect(await isListed()).toBe(false)
      expect(await queriedAt()).toBe(6)
    })

    test('is left by a denial and not due any more, although the clock was ahead when it was joined', async () => {
      const { answer, deny, notify, due, isListed } = await setUp()
      await answer(20_000)
      await deny(11, 12)
      expect(await isListed()).toBe(false)
      await notify('add', 20_000)
      await deny(13)
      expect(await due()).toEqual([])
    })

    test('is queried again and then joined if that happened during a query', async () => {
      const { answer, notify, due, reported, isListed } = await setUp()
      await notify('remove', 12)
      await notify('add', 13)
      await answer(11, 14)
      expect(await isListed()).toBe(false)
      expect(await due()).toMatchObject([{ hasJoined: true }])
      await answer(15)
      expect(await isListed()).toBe(true)
      expect(await due()).toEqual([])
      expect(await reported()).toEqual(['group.joined', 'group.left'])
    })
  })
}
