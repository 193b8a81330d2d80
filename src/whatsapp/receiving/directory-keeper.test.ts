import pino from 'pino'
import { expect, test, vi } from 'vitest'
import type { GroupChange, GroupDetails } from '../../domain/recipients/group.ts'
import type { Directory, DueGroup } from '../../store/directory/directory.ts'
import { parseGroupChanges } from '../baileys/parsing/group.ts'
import { DirectoryKeeper } from './directory-keeper.ts'

const GROUP = '120363000000000777@g.us'
const SELF = { id: '5511900000000@s.whatsapp.net', lid: '1@lid' }
const DESCRIBED: GroupDetails = {
  id: GROUP,
  subject: 'Team',
  description: null,
  memberCount: 1,
  members: [{ phone: null, lid: '1@lid', role: 'member' }],
  addressing: 'lid',
  adminsOnly: false,
  isCommunity: false,
  disappearsAfter: 0,
}

/**
 * A keeper whose due rows the caller may reuse, and a WhatsApp that lists the groups when `fill` is called.
 * @param readBefore all groups were read before; settles when the database says so
 */
function setUp(due = new Map<string, DueGroup>(), isKnown = false, readBefore?: Promise<void>) {
  const filled = Promise.withResolvers<GroupDetails[]>()
  const end = new AbortController()
  let isFilled = false
  const recorded: (readonly GroupChange[])[] = []
  const listDueGroups = vi.fn(async () => [...due.values()])
  const directory: Partial<Directory> = {
    findFilled: async () => {
      await readBefore
      return { groups: isFilled || readBefore !== undefined, contacts: true }
    },
    listDueGroups,
    readGroup: async () => (isKnown ? { details: DESCRIBED, asOf: Date.now(), queriedAt: 0 } : null),
    recordGroups: async (_, groups, { reason }) => {
      if (reason === 'queried') for (const { id } of groups) due.delete(id)
    },
    recordGroupChanges: async (_, id, changes) => {
      recorded.push(changes)
      due.set(id, { id, hasJoined: changes[0]?.kind === 'add', queriedAt: 0 })
      return 'unknown'
    },
    recordGroupsFilled: async () => {
      isFilled = true
    },
  }
  const keeper = new DirectoryKeeper({
    lease: { instanceId: 'inst_0', owner: 'node', epoch: 1 },
    store: { directory: directory as Directory },
    logger: pino({ level: 'silent' }),
    now: Date.now,
    signal: end.signal,
  })
  const queryGroup = vi.fn(async () => DESCRIBED)
  const link = {
    self: SELF,
    closed: end.signal,
    queryGroup,
    queryGroups: () => filled.promise,
    readAddressBook: async () => false,
  }
  keeper.attach(link)
  const report = (changes: GroupChange[]) => keeper.recordChanges(GROUP, { changes, notice: null }, link)
  const notify = (kind: 'subject' | 'add') => report([kind === 'add' ? { kind, members: [] } : { kind, subject: 'x' }])
  return {
    due,
    recorded,
    queryGroup,
    listDueGroups,
    keeper,
    link,
    report,
    notify,
    fill: () => filled.resolve([]),
    end: () => end.abort(),
  }
}

test('notifications about an unknown group cause one query, and none before all groups were read', async () => {
  const { due, queryGroup, notify, fill, end } = setUp()
  queryGroup.mockRejectedValue(new Error('Timed out.'))
  for (let count = 0; count < 10; count += 1) await notify('subject')
  expect(queryGroup).not.toHaveBeenCalled()
  fill()
  await vi.waitFor(() => expect(queryGroup).toHaveBeenCalledTimes(1), 30_000)
  for (let count = 0; count < 10; count += 1) await notify('subject')
  expect(due.size).toBe(1)
  expect(queryGroup).toHaveBeenCalledTimes(1)
  end()
})

test('a group that was joined is queried at once, and after a restart if WhatsApp did not answer', async () => {
  const first = setUp()
  first.queryGroup.mockRejectedValue(new Error('Timed out.'))
  await first.notify('add')
  await vi.waitFor(() => expect(first.queryGroup).toHaveBeenCalledTimes(1), 30_000)
  first.end()
  const second = setUp(first.due)
  await vi.waitFor(() => expect(second.due.size).toBe(0), 30_000)
  expect(second.queryGroup).toHaveBeenCalledTimes(1)
  second.end()
})

test('a due group is queried, even if the database first lists it and then says that all groups were read before', async () => {
  const readBefore = Promise.withResolvers<void>()
  const due = new Map([[GROUP, { id: GROUP, hasJoined: false, queriedAt: 0 }]])
  const { listDueGroups, end } = setUp(due, false, readBefore.promise)
  await vi.waitFor(() => expect(listDueGroups).toHaveBeenCalledTimes(1), 30_000)
  readBefore.resolve()
  await vi.waitFor(() => expect(due.size).toBe(0), 30_000)
  end()
})

test('a group that was joined during a query of a message to it is queried again', async () => {
  const { due, queryGroup, notify, keeper, link, end } = setUp()
  const first = Promise.withResolvers<GroupDetails>()
  queryGroup.mockImplementationOnce(() => first.promise)
  const found = keeper.groups.find(GROUP, link)
  await vi.waitFor(() => expect(queryGroup).toHaveBeenCalledTimes(1), 30_000)
  await notify('add')
  // Its answer is older than the notification.
  vi.spyOn(due, 'delete').mockImplementationOnce(() => false)
  await new Promise(setImmediate)
  first.resolve(DESCRIBED)
  await found
  await vi.waitFor(() => expect(due.size).toBe(0), 30_000)
  expect(queryGroup).toHaveBeenCalledTimes(2)
  end()
})

test('a group whose query ended with its link is queried over the next link at once', async () => {
  const { due, queryGroup, keeper, link, end } = setUp()
  end()
  const closing = new AbortController()
  due.set(GROUP, { id: GROUP, hasJoined: true, queriedAt: 0 })
  queryGroup.mockImplementationOnce(async () => {
    closing.abort()
    throw new Error('Connection Closed')
  })
  keeper.attach({ ...link, closed: closing.signal })
  await vi.waitFor(() => expect(queryGroup).toHaveBeenCalledTimes(1), 30_000)
  const next = new AbortController()
  keeper.attach({ ...link, closed: next.signal })
  await vi.waitFor(() => expect(due.size).toBe(0), 30_000)
  next.abort()
})

test('after the number of a member has changed, the next message to the group asks WhatsApp', async () => {
  const { keeper, link, report, queryGroup, end } = setUp(undefined, true)
  await keeper.groups.find(GROUP, link)
  expect(queryGroup).not.toHaveBeenCalled()
  const content = [{ tag: 'modify', attrs: {}, content: [{ tag: 'participant', attrs: { jid: '2@lid' } }] }]
  await report(parseGroupChanges({ tag: 'notification', attrs: {}, content }))
  await keeper.groups.find(GROUP, link)
  expect(queryGroup).toHaveBeenCalledTimes(1)
  end()
})

test('a notification with several changes records all of them at once, in their order', async () => {
  const { report, recorded, end } = setUp(undefined, true)
  const participant = { tag: 'participant', attrs: { jid: '2@lid' } }
  const content = [
    { tag: 'subject', attrs: { subject: 'New' } },
    { tag: 'unknown', attrs: {} },
    { tag: 'remove', attrs: {}, content: [participant] },
    { tag: 'modify', attrs: {} },
    { tag: 'add', attrs: {}, content: [participant] },
  ]
  await report(parseGroupChanges({ tag: 'notification', attrs: {}, content }))
  expect(recorded.map(changes => changes.map(({ kind }) => kind))).toEqual([['subject', 'remove', 'add']])
  end()
})
