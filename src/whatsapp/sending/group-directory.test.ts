import { expect, test, vi } from 'vitest'
import { createGroupDirectory } from '../../../test/units/group-directory.ts'
import type { GroupDetails, GroupRole } from '../../domain/recipients/group.ts'
import { StoreUnavailable } from '../../store/errors.ts'

const GROUP = '120363000000000777@g.us'
const HOUR_MS = 3_600_000
const SELF = { id: '5511900000000@s.whatsapp.net', lid: '1@lid' }

function describing(lid: string): GroupDetails {
  return {
    id: GROUP,
    subject: 'Team',
    description: null,
    memberCount: 1,
    members: [{ phone: null, lid, role: 'member' }],
    addressing: 'lid',
    adminsOnly: false,
    isCommunity: false,
    disappearsAfter: 0,
  }
}

function refusing(): Promise<GroupDetails> {
  return Promise.reject(Object.assign(new Error('forbidden'), { data: 403 }))
}

test.each([
  ['a member', async () => describing('1@lid'), 'member'],
  ['not a member', refusing, 'not_member'],
  ['not among the members', async () => describing('2@lid'), 'not_member'],
] as const)('WhatsApp is asked about a group once an hour if the account is %s', async (_, answer, expected) => {
  let now = 1_000_000_000
  const { groups } = createGroupDirectory(() => now)
  const queryGroup = vi.fn<() => Promise<GroupDetails>>(answer)
  const find = () => groups.find(GROUP, { self: SELF, queryGroup })
  expect(await Promise.all([find(), find()])).toEqual([expected, expected])
  now += HOUR_MS - 1
  // Neither a doubt nor a lost cache is a reason to ask again.
  groups.doubt(GROUP)
  groups.forget(GROUP)
  expect(await find()).toBe(expected)
  expect(queryGroup).toHaveBeenCalledTimes(1)
  now += 1
  expect(await find()).toBe(expected)
  expect(queryGroup).toHaveBeenCalledTimes(2)
})

test('a group that is known is used while WhatsApp does not answer, and a message to an unknown one waits', async () => {
  let now = 1_000_000_000
  const { groups, rows } = createGroupDirectory(() => now)
  const queryGroup = vi.fn(() => Promise.reject(new Error('Timed out.')))
  const find = () => groups.find(GROUP, { self: SELF, queryGroup })
  expect(await find()).toBe('silent')
  rows.set(GROUP, { details: describing('1@lid'), asOf: now, queriedAt: 0 })
  expect(await find()).toBe('member')
  expect(queryGroup).toHaveBeenCalledTimes(1)
  now += HOUR_MS
  expect([await find(), await find()]).toEqual(['member', 'member'])
  expect(queryGroup).toHaveBeenCalledTimes(2)
})

test('a group that was left while the clock was ahead is queried, once', async () => {
  const now = 1_000_000_000
  const { groups, rows } = createGroupDirectory(() => now)
  rows.set(GROUP, { details: null, asOf: now + HOUR_MS, queriedAt: now + HOUR_MS })
  const queryGroup = vi.fn(async () => describing('1@lid'))
  const find = () => groups.find(GROUP, { self: SELF, queryGroup })
  expect([await find(), await find()]).toEqual(['member', 'member'])
  expect(queryGroup).toHaveBeenCalledTimes(1)
})

test('a group that may have changed is queried again if it was known only from a list', async () => {
  const now = 1_000_000_000
  const { groups, rows } = createGroupDirectory(() => now)
  rows.set(GROUP, { details: describing('1@lid'), asOf: now, queriedAt: 0 })
  const queryGroup = vi.fn(async () => describing('1@lid'))
  const find = () => groups.find(GROUP, { self: SELF, queryGroup })
  expect(await find()).toBe('member')
  expect(queryGroup).not.toHaveBeenCalled()
  groups.doubt(GROUP)
  expect([await find(), await find()]).toEqual(['member', 'member'])
  expect(queryGroup).toHaveBeenCalledTimes(1)
})

test('a group is queried again after a denial that is older than its row', async () => {
  const now = 1_000_000_000
  const row = { details: describing('1@lid'), asOf: now, queriedAt: 0 }
  const { groups, rows } = createGroupDirectory(
    () => now,
    () => undefined,
    () => rows.set(GROUP, row),
  )
  const queryGroup = vi.fn(refusing)
  const find = () => groups.find(GROUP, { self: SELF, queryGroup })
  expect([await find(), await find()]).toEqual(['not_member', 'not_member'])
  expect(queryGroup).toHaveBeenCalledTimes(2)
})

test.each([
  ['a notification', { details: null, asOf: 1, queriedAt: 0 }, 'not_member'],
  ['an unlinking', null, 'silent'],
] as const)('%s during a query without an answer is not undone', async (_, row, expected) => {
  let now = 1_000_000_000
  const { groups, rows } = createGroupDirectory(() => now)
  rows.set(GROUP, { details: describing('1@lid'), asOf: now, queriedAt: 0 })
  now += HOUR_MS
  const queryGroup = async () => {
    rows.clear()
    if (row) rows.set(GROUP, row)
    groups.flushAll()
    throw new Error('Timed out.')
  }
  expect(await groups.find(GROUP, { self: SELF, queryGroup })).toBe(expected)
  expect(await groups.describe(GROUP)).toBeNull()
})

test.each<[string, GroupRole, boolean, number]>([
  ['an admin is known without a query', 'admin', true, 0],
  ['WhatsApp is asked about a member once', 'member', false, 1],
])('%s, even while WhatsApp does not answer', async (_, role, expected, queries) => {
  let now = 1_000_000_000
  const { groups, rows } = createGroupDirectory(() => now)
  const members = [{ phone: null, lid: '1@lid', role: 'member' } as const, { phone: null, lid: '2@lid', role }]
  rows.set(GROUP, { details: { ...describing('1@lid'), members }, asOf: now, queriedAt: 0 })
  now += HOUR_MS
  const queryGroup = vi.fn(() => Promise.reject(new Error('Timed out.')))
  const source = { self: SELF, queryGroup, closed: new AbortController().signal }
  const sender = { group: GROUP, from: '2', addressing: 'lid', lid: '2@lid' } as const
  for (let times = 0; times < 3; times += 1) expect(await groups.isAdmin(sender, source)).toBe(expected)
  expect(queryGroup).toHaveBeenCalledTimes(queries)
})

test('a deletion in an unknown group waits to be delivered again if WhatsApp does not answer, and is refused the second time', async () => {
  const { groups } = createGroupDirectory()
  const queryGroup = () => Promise.reject(new Error('Timed out.'))
  const source = { self: SELF, queryGroup, closed: new AbortController().signal }
  const isAdmin = () => groups.isAdmin({ group: GROUP, from: '2', addressing: 'lid', lid: '2@lid' }, source)
  await expect(isAdmin()).rejects.toThrow()
  expect(await isAdmin()).toBe(false)
})

test('a group is refreshed at most once a minute, whatever the answer is; concurrent refreshes share one query', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  const { groups } = createGroupDirectory()
  const link = new AbortController()
  const queryGroup = vi.fn(() => Promise.reject(new Error('Rate limited.')))
  const refresh = () => groups.refresh(GROUP, { self: SELF, queryGroup, closed: link.signal })
  await Promise.all([refresh(), refresh()])
  await refresh()
  expect(queryGroup).toHaveBeenCalledTimes(1)
  vi.advanceTimersByTime(60_000)
  await refresh()
  expect(queryGroup).toHaveBeenCalledTimes(2)
  vi.useRealTimers()
})

test('a refresh that the end of the link interrupts does not count', async () => {
  const { groups, rows } = createGroupDirectory()
  const link = new AbortController()
  const interrupted = async () => {
    link.abort()
    throw new Error('The link to WhatsApp has ended.')
  }
  await groups.refresh(GROUP, { self: SELF, queryGroup: interrupted, closed: link.signal })
  const queryGroup = async () => describing('1@lid')
  await groups.refresh(GROUP, { self: SELF, queryGroup, closed: new AbortController().signal })
  expect(rows.get(GROUP)?.details?.members).toHaveLength(1)
})

test('an answer that is recorded late has the time at which it is recorded', async () => {
  let now = 1_000_000_000
  const { groups, rows } = createGroupDirectory(
    () => now,
    () => {
      if (now > 1_000_000_000) return
      now += 5_000
      throw new StoreUnavailable('down')
    },
  )
  await groups.find(GROUP, { self: SELF, queryGroup: async () => describing('1@lid') })
  expect(rows.get(GROUP)?.asOf).toBe(1_000_005_000)
})
