import { describe, expect, onTestFinished, test } from 'vitest'
import type { InstanceId } from '../../../../src/domain/ids.ts'
import type { GroupChange, GroupDetails, GroupMember } from '../../../../src/domain/recipients/group.ts'
import type { Lease } from '../../../../src/store/leases/leases.ts'
import type { Store } from '../../../../src/store/store.ts'
import { createConnected, withStore } from '../../fixture.ts'
import type { CreateHarness } from '../../harness.ts'

const SELF = { phone: '5511900000000', lid: '1@lid' }
const own: GroupMember = { ...SELF, role: 'member' }
const ana: GroupMember = { phone: '5511900000001', lid: '2@lid', role: 'owner' }
const bia: GroupMember = { phone: null, lid: '3@lid', role: 'member' }

let count = 0

export function describing(changes: Partial<GroupDetails> = {}): GroupDetails {
  count += 1
  return {
    id: `12036304${count}@g.us`,
    subject: `Team ${count}`,
    description: null,
    memberCount: 2,
    members: [own, ana],
    addressing: 'lid',
    adminsOnly: false,
    isCommunity: false,
    disappearsAfter: 0,
    ...changes,
  }
}

export function groupsContract(createHarness: CreateHarness): void {
  describe('the groups of the directory', () => {
    const context = withStore(createHarness)

    function record(lease: Lease, groups: GroupDetails[], { askedAt = 1, now = 1, reason = 'listed' as const } = {}) {
      return context.store.directory.recordGroups(lease, groups, { self: SELF, askedAt, now, reason })
    }

    async function subjects(store: Store, instanceId: InstanceId, search?: string) {
      const { data } = await store.directory.listGroups(instanceId, { limit: 50 }, search)
      return data.map(({ subject }) => subject)
    }

    test('are listed by name, page by page, and found by a part of the name without case and accents', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const names = ['Época', 'ação', 'Zebra', 'Bola 100%', 'bola_1', 'Ação II', '\u0000 null', 'lone \ud83d']
      await record(
        lease,
        names.map(subject => describing({ subject })),
      )
      await record(await createConnected(store), [describing({ subject: 'Ação of another instance' })])
      const { instanceId } = lease
      const all: string[] = []
      for (let cursor: string | undefined; ; ) {
        const page = await store.directory.listGroups(instanceId, { limit: 3, cursor })
        all.push(...page.data.map(({ subject }) => subject))
        if (page.nextCursor === null) break
        cursor = page.nextCursor
      }
      expect(all).toEqual(['\u0000 null', 'ação', 'Ação II', 'Bola 100%', 'bola_1', 'Época', 'lone \ud83d', 'Zebra'])
      expect(await subjects(store, instanceId, 'ACAO')).toEqual(['ação', 'Ação II'])
      expect(await subjects(store, instanceId, '0%')).toEqual(['Bola 100%'])
      expect(await subjects(store, instanceId, 'a_')).toEqual(['bola_1'])
      expect(await subjects(store, instanceId, 'poc')).toEqual(['Época'])
    })

    test('and contacts are found by quotation marks, backslashes and line breaks', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const name = 'Say "hi"\nor \\o/'
      await record(lease, [describing({ subject: name }), describing({ subject: 'Say hi' })])
      const nameless = { lid: null, name: null, pushName: null, username: null, lastMessageAt: 1 }
      await store.directory.recordContacts(lease, [
        { ...nameless, chat: '5511988880001', name },
        { ...nameless, chat: '5511988880002', pushName: name },
        { ...nameless, chat: '5511988880003', username: 'hi' },
      ])
      const { instanceId } = lease
      for (const search of ['"hi"', '\\O', '"\nor', name]) {
        expect(await subjects(store, instanceId, search)).toEqual([name])
        const { data } = await store.directory.listContacts(instanceId, { limit: 10 }, search)
        expect(data.map(({ chat }) => chat)).toEqual(['5511988880001', '5511988880002'])
        expect((await store.conversations.listInbox(instanceId, { limit: 10 }, search)).data).toHaveLength(2)
      }
      expect(await subjects(store, instanceId, '\\n')).toEqual([])
    })

    test('change as WhatsApp notifies, and a repeated notification changes nothing', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const group = describing()
      await record(lease, [group])
      const { directory } = store
      for (let times = 0; times < 2; times += 1) {
        const change = { kind: 'add', members: [bia] } as const
        expect(await directory.recordGroupChanges(lease, group.id, [change], { self: SELF, now: 2 })).toBe('recorded')
      }
      expect(await directory.findGroup(lease.instanceId, group.id)).toEqual({
        id: group.id,
        subject: group.subject,
        description: null,
        memberCount: 3,
        canSend: true,
        isAdmin: false,
        asOf: 2,
        members: [own, ana, bia].map(member => ({ ...member, name: null })),
      })
      const locked = { kind: 'admins_only', adminsOnly: true } as const
      await directory.recordGroupChanges(lease, group.id, [locked], { self: SELF, now: 3 })
      const promoted = { kind: 'promote', members: [{ ...own, phone: null }] } as const
      expect((await directory.findGroup(lease.instanceId, group.id))?.canSend).toBe(false)
      await directory.recordGroupChanges(lease, group.id, [promoted], { self: SELF, now: 4 })
      expect(await directory.findGroup(lease.instanceId, group.id)).toMatchObject({
        canSend: true,
        isAdmin: true,
        asOf: 4,
      })
    })

    test('are gone when the account leaves, and come back when it joins', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { directory } = store
      const group = describing()
      await record(lease, [group])
      const of = { self: SELF, now: 2 }
      await directory.recordGroupChanges(lease, group.id, [{ kind: 'remove', members: [own] }], of)
      expect(await directory.findGroup(lease.instanceId, group.id)).toBeNull()
      expect(await subjects(store, lease.instanceId)).toEqual([])
      expect(await directory.readGroup(lease.instanceId, group.id)).toMatchObject({ details: null, asOf: 2 })
      expect(await directory.recordGroupChanges(lease, group.id, [{ kind: 'joined', group }], of)).toBe('recorded')
      expect(await subjects(store, lease.instanceId)).toEqual([group.subject])
    })

    test('are reported by one event for each visible change, and by none for the groups that exist at first', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { directory } = store
      const group = describing({ subject: 'Team of events' })
      await record(lease, [group])
      const of = { self: SELF, now: 2 }
      const changes: GroupChange[] = [
        { kind: 'add', members: [bia] },
        { kind: 'add', members: [bia] },
        { kind: 'promote', members: [bia] },
        { kind: 'disappearing', disappearsAfter: 60 },
        { kind: 'remove', members: [bia] },
        { kind: 'subject', subject: 'New' },
        { kind: 'remove', members: [own] },
        { kind: 'remove', members: [own] },
        { kind: 'joined', group },
      ]
      for (const change of changes) await directory.recordGroupChanges(lease, group.id, [change], of)
      const { data } = await store.events.list(lease.instanceId, { limit: 20 })
      const events = await Promise.all(data.map(({ id }) => store.events.find(lease.instanceId, id)))
      const bodies = events.map(event => JSON.parse(Buffer.from(event!.body).toString())).reverse()
      const facts = { group: group.id, subject: 'Team of events', memberCount: 3, canSend: true, isAdmin: false }
      const person = { phone: bia.phone, lid: bia.lid }
      expect(bodies.map(({ event, data }) => [event, data])).toEqual([
        ['group.changed', { ...facts, changed: ['members'], added: [person] }],
        ['group.changed', { ...facts, changed: ['roles'], promoted: [person] }],
        ['group.changed', { ...facts, memberCount: 2, changed: ['members'], removed: [person] }],
        ['group.changed', { ...facts, subject: 'New', memberCount: 2, changed: ['subject'] }],
        ['group.left', { group: group.id, subject: 'New' }],
        ['group.joined', { ...facts, memberCount: 2 }],
      ])
    })

    test('change by all that one notification reports, with one event, and nothing is reported twice', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { directory } = store
      const group = describing()
      await record(lease, [group])
      const changes: GroupChange[] = [
        { kind: 'subject', subject: 'Renamed' },
        { kind: 'remove', members: [ana] },
        { kind: 'add', members: [ana, bia] },
      ]
      for (let times = 0; times < 2; times += 1)
        expect(await directory.recordGroupChanges(lease, group.id, changes, { self: SELF, now: 2 })).toBe('recorded')
      const described = await directory.findGroup(lease.instanceId, group.id)
      expect(described).toMatchObject({ subject: 'Renamed', memberCount: 3 })
      const { data } = await store.events.list(lease.instanceId, { limit: 20 })
      expect(data.map(({ kind }) => kind)).toEqual(['group.changed'])
      const event = await store.events.find(lease.instanceId, data[0]!.id)
      expect(JSON.parse(Buffer.from(event!.body).toString()).data).toMatchObject({
        changed: ['subject', 'members'],
        added: [{ phone: bia.phone, lid: bia.lid }],
      })
    })

    test('that the account leaves and enters by one notification have to be queried', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { directory } = store
      const group = describing()
      await record(lease, [group])
      const [leave, enter] = [{ kind: 'remove', members: [own] } as const, { kind: 'add', members: [own] } as const]
      const of = { self: SELF, now: 2 }
      expect(await directory.recordGroupChanges(lease, group.id, [leave, enter], of)).toBe('unknown')
      expect(await directory.listDueGroups(lease.instanceId)).toMatchObject([{ id: group.id, hasJoined: true }])
      expect(await directory.recordGroupChanges(lease, group.id, [enter, leave], of)).toBe('recorded')
    })

    test('that are unknown have to be queried, unless the account leaves them', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const change = (id: string, kind: 'add' | 'remove', member: GroupMember) =>
        store.directory.recordGroupChanges(lease, id, [{ kind, members: [member] }], { self: SELF, now: 5 })
      expect(await change('1@g.us', 'add', bia)).toBe('unknown')
      expect(await change('1@g.us', 'remove', own)).toBe('recorded')
      await store.directory.recordNoMember(lease, '2@g.us', { askedAt: 4, now: 4 })
      expect(await store.directory.readGroup(lease.instanceId, '2@g.us')).toEqual({
        details: null,
        asOf: 4,
        queriedAt: 4,
      })
      expect(await change('2@g.us', 'add', bia)).toBe('recorded')
      expect(await change('2@g.us', 'add', own)).toBe('unknown')
    })

    test('that have to be queried stay so until WhatsApp has answered, and then report once that they were joined', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { directory } = store
      const group = describing()
      const notify = (kind: 'add' | 'remove', member: GroupMember, now: number) =>
        directory.recordGroupChanges(lease, group.id, [{ kind, members: [member] }], { self: SELF, now })
      const due = () => directory.listDueGroups(lease.instanceId)
      const answer = (askedAt: number) =>
        directory.recordGroups(lease, [group], { self: SELF, askedAt, now: askedAt + 2, reason: 'queried' })
      expect(await notify('add', own, 5)).toBe('unknown')
      expect(await notify('add', bia, 7)).toBe('unknown')
      expect(await due()).toEqual([{ id: group.id, hasJoined: true, queriedAt: 0 }])
      // Denials that have become old are removed, but nothing that is due.
      await directory.recordNoMember(lease, '9@g.us', { askedAt: 9_000_000_000, now: 9_000_000_000 })
      // The second notice comes before the answer.
      await answer(6)
      expect(await due()).toEqual([{ id: group.id, hasJoined: false, queriedAt: 8 }])
      await answer(9)
      expect(await due()).toEqual([])
      expect(await notify('add', bia, 12)).toBe('recorded')
      const { data } = await store.events.list(lease.instanceId, { limit: 20 })
      expect(data.map(({ kind }) => kind)).toEqual(['group.changed', 'group.joined'])
    })

    test('keep a notification that is newer than the answer to a query', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const group = describing()
      await record(lease, [group], { now: 1 })
      const renamed = { kind: 'subject', subject: 'New' } as const
      await store.directory.recordGroupChanges(lease, group.id, [renamed], { self: SELF, now: 10 })
      await store.directory.recordGroups(lease, [group], { self: SELF, askedAt: 9, now: 11, reason: 'queried' })
      expect(await store.directory.readGroup(lease.instanceId, group.id)).toMatchObject({
        details: { subject: 'New' },
        queriedAt: 11,
      })
      await store.directory.recordGroups(lease, [group], { self: SELF, askedAt: 11, now: 12, reason: 'queried' })
      expect(await store.directory.readGroup(lease.instanceId, group.id)).toMatchObject({
        details: group,
        queriedAt: 12,
      })
    })

    test('that the complete list lacks are left, unless they were joined since', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const { directory } = store
      const [kept, left, joined] = [describing(), describing(), describing()]
      await record(lease, [kept, left], { now: 1 })
      await directory.recordGroupChanges(lease, joined.id, [{ kind: 'joined', group: joined }], { self: SELF, now: 6 })
      expect((await directory.findFilled(lease.instanceId)).groups).toBe(false)
      await directory.recordGroupsFilled(lease, [kept.id], { askedAt: 5, now: 7 })
      expect((await directory.findFilled(lease.instanceId)).groups).toBe(true)
      expect(await subjects(store, lease.instanceId)).toEqual([kept.subject, joined.subject])
    })

    test('are erased when the account is unlinked, and have to be read again', async () => {
      const { store } = context
      const lease = await createConnected(store)
      await record(lease, [describing()])
      await store.directory.recordGroupsFilled(lease, [], { askedAt: 0, now: 1 })
      await store.credentials.clear(lease)
      expect(await subjects(store, lease.instanceId)).toEqual([])
      expect(await store.directory.findFilled(lease.instanceId)).toEqual({ groups: false, contacts: false })
    })

    test('are erased twenty at a time, and large amounts of credentials in several commits as well', async () => {
      const writes: string[] = []
      const harness = await createHarness()
      onTestFinished(() => harness.dispose())
      const store = await harness.open({ observer: { onWrite: name => writes.push(name), onMessageStep: () => {} } })
      const lease = await createConnected(store)
      await store.directory.recordGroups(
        lease,
        Array.from({ length: 21 }, () => describing()),
        {
          self: SELF,
          askedAt: 1,
          now: 1,
          reason: 'listed',
        },
      )
      const value = Buffer.from('key')
      const keys = Array.from({ length: 501 }, (_, index) => ({ type: 'session', id: String(index), value }))
      await store.credentials.set(lease, keys)
      writes.length = 0
      await store.credentials.clear(lease)
      // Two commits each for the credentials and the groups, one each for the contacts and the note of what was read.
      expect(writes).toEqual(Array(6).fill('credentials.clear'))
      expect(
        await store.credentials.get(
          lease.instanceId,
          'session',
          keys.map(({ id }) => id),
        ),
      ).toEqual(new Map())
      expect(await subjects(store, lease.instanceId)).toEqual([])
    })

    test('are not written by a former owner', async () => {
      const { store } = context
      const lease = await createConnected(store)
      const stale = { ...lease, epoch: lease.epoch - 1 }
      await expect(record(stale, [describing()])).rejects.toThrow()
      expect(await subjects(store, lease.instanceId)).toEqual([])
    })
  })
}
