import { expect, test, vi } from 'vitest'
import { createGroupDirectory } from '../../../test/units/group-directory.ts'
import type { GroupDetails } from '../../domain/recipients/group.ts'

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
  ['no member', refusing, 'not_member'],
  ['not among the members', async () => describing('2@lid'), 'not_member'],
] as const)('WhatsApp is asked about a group once in an hour, if the account is %s', async (_, answer, expected) => {
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

test('a group that is known is used while WhatsApp does not answer, and an unknown one waits', async () => {
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

test('a group that may have changed is asked about again, if it was only listed', async () => {
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
