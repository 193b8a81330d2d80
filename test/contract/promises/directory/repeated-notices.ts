import { describe, expect, test } from 'vitest'
import type { GroupChange, GroupDetails, GroupMember } from '../../../../src/domain/recipients/group.ts'
import type { Lease } from '../../../../src/store/leases/leases.ts'
import { createConnected, withStore } from '../../fixture.ts'
import type { CreateHarness } from '../../harness.ts'
import { describing } from './groups.ts'

const SELF = { phone: '5511900000000', lid: '1@lid' }
const own: GroupMember = { ...SELF, role: 'member' }
const bia: GroupMember = { phone: null, lid: '3@lid', role: 'member' }
/** WhatsApp's time of the first notice, in seconds. */
const SENT_AT = 1_700_000_000

export function repeatedNoticesContract(createHarness: CreateHarness): void {
  describe('notices of a group that WhatsApp delivers again', () => {
    const context = withStore(createHarness)

    async function setUp(group: GroupDetails | null = describing()) {
      const { directory, events } = context.store
      const lease = await createConnected(context.store)
      const id = group?.id ?? describing().id
      let now = 1
      const answer = (described: GroupDetails) => {
        now += 2
        return directory.recordGroups(lease, [described], { self: SELF, askedAt: now - 1, now, reason: 'queried' })
      }
      if (group) await answer(group)
      /** Delivers notices, each a second after the one before it. */
      const deliver = async (changes: GroupChange[], from = SENT_AT) => {
        for (const [index, change] of changes.entries()) {
          const at = from + index
          const notice = { id: `N${at}`, at }
          now += 1
          await directory.recordGroupChanges(lease, id, [change], { self: SELF, now, notice })
        }
      }
      const reported = async () => {
        const { data } = await events.list(lease.instanceId, { limit: 50 })
        return data.map(({ kind }) => kind).reverse()
      }
      return { lease, id, answer, deliver, reported }
    }

    function read(lease: Lease, id: string) {
      return context.store.directory.findGroup(lease.instanceId, id)
    }

    test.each<[string, GroupChange[]]>([
      [
        'a member who came and went',
        [
          { kind: 'add', members: [bia] },
          { kind: 'remove', members: [bia] },
        ],
      ],
      [
        'a subject that was changed and changed back',
        [
          { kind: 'subject', subject: 'B' },
          { kind: 'subject', subject: 'A' },
        ],
      ],
    ])('are reported once, also %s', async (_, changes) => {
      const { lease, id, deliver, reported } = await setUp(describing({ subject: 'A' }))
      await deliver(changes)
      await deliver(changes)
      await deliver(changes.slice(1), SENT_AT + 1)
      expect(await reported()).toEqual(['group.changed', 'group.changed'])
      expect(await read(lease, id)).toMatchObject({ subject: 'A', memberCount: 2 })
    })

    test('do not remove the account from a group again that it has left and joined', async () => {
      const group = describing()
      const { lease, id, answer, deliver, reported } = await setUp(group)
      const changes: GroupChange[] = [
        { kind: 'remove', members: [own] },
        { kind: 'add', members: [own] },
      ]
      await deliver(changes)
      await answer(group)
      await deliver(changes)
      expect(await reported()).toEqual(['group.left', 'group.joined'])
      expect(await read(lease, id)).not.toBeNull()
      expect(await context.store.directory.listDueGroups(lease.instanceId)).toEqual([])
    })

    test('do not remove it from a group that was unknown', async () => {
      const { lease, id, answer, deliver, reported } = await setUp(null)
      const changes: GroupChange[] = [
        { kind: 'remove', members: [own] },
        { kind: 'add', members: [own] },
      ]
      await deliver(changes)
      await answer(describing({ id }))
      await deliver(changes)
      expect(await reported()).toEqual(['group.joined'])
      expect(await read(lease, id)).not.toBeNull()
    })

    test('leave the group as it is, even if they are more than are remembered', async () => {
      const { lease, id, deliver, reported } = await setUp()
      const changes = Array.from(
        { length: 201 },
        (_, index): GroupChange =>
          index === 0 || index === 200
            ? { kind: index === 0 ? 'add' : 'remove', members: [bia] }
            : { kind: 'disappearing', disappearsAfter: index },
      )
      await deliver(changes)
      await deliver(changes)
      expect(await reported()).toEqual(['group.changed', 'group.changed'])
      expect((await read(lease, id))?.memberCount).toBe(2)
    })

    test('are told from other notices with the same content', async () => {
      const { deliver, reported } = await setUp()
      const changes: GroupChange[] = [
        { kind: 'add', members: [bia] },
        { kind: 'remove', members: [bia] },
      ]
      await deliver(changes)
      await deliver(changes, SENT_AT + 2)
      expect(await reported()).toEqual(Array(4).fill('group.changed'))
    })
  })
}
