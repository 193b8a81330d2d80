import { describe, expect, test } from 'vitest'
import { applyChange, differenceOf, factsOf, type GroupChange, type GroupDetails, type GroupMember } from './group.ts'

const SELF = { phone: '5511900000000', lid: '1@lid' }
const own: GroupMember = { ...SELF, role: 'member' }
const ana: GroupMember = { phone: '5511900000001', lid: '2@lid', role: 'admin' }
const bia: GroupMember = { phone: null, lid: '3@lid', role: 'member' }
const carlos: GroupMember = { phone: '5511900000003', lid: '4@lid', role: 'member' }

const GROUP: GroupDetails = {
  id: '1@g.us',
  subject: 'Team',
  description: null,
  memberCount: 3,
  members: [own, ana, bia],
  addressing: 'lid',
  adminsOnly: false,
  isCommunity: false,
  disappearsAfter: 0,
}

const NOTHING = { changed: [], added: [], removed: [], promoted: [], demoted: [] }

function changed(change: GroupChange, group = GROUP): GroupDetails {
  const next = applyChange(group, change, SELF)
  if (next === null) throw new Error('The account has left.')
  return next
}

describe('a change of a group', () => {
  test.each<[string, GroupChange, object]>([
    ['a member is added', { kind: 'add', members: [carlos] }, { changed: ['members'], added: [carlos] }],
    ['a member is removed', { kind: 'remove', members: [bia] }, { changed: ['members'], removed: [bia] }],
    [
      'a member becomes an admin',
      { kind: 'promote', members: [bia] },
      { changed: ['roles'], promoted: [{ ...bia, role: 'admin' }] },
    ],
    [
      'an admin becomes a member',
      { kind: 'demote', members: [ana] },
      { changed: ['roles'], demoted: [{ ...ana, role: 'member' }] },
    ],
    ['the subject changes', { kind: 'subject', subject: 'Crew' }, { changed: ['subject'] }],
    ['the description changes', { kind: 'description', description: 'x' }, { changed: ['description'] }],
    ['only admins may write', { kind: 'admins_only', adminsOnly: true }, { changed: ['canSend'] }],
    ['messages disappear', { kind: 'disappearing', disappearsAfter: 60 }, {}],
  ])('is reported, and changes nothing when it is repeated: %s', (_, change, difference) => {
    const next = changed(change)
    expect(differenceOf(GROUP, next, SELF)).toEqual({ ...NOTHING, ...difference })
    expect(changed(change, next)).toEqual(next)
  })

  test('ends the membership if the account is removed, by number or by LID, or the group is deleted', () => {
    for (const member of [
      { ...own, phone: null },
      { ...own, lid: null },
    ])
      expect(applyChange(GROUP, { kind: 'remove', members: [member] }, SELF)).toBeNull()
    expect(applyChange(GROUP, { kind: 'deleted' }, SELF)).toBeNull()
  })

  test('keeps the count of a group whose members are not all listed', () => {
    const large = { ...GROUP, memberCount: 900 }
    expect(changed({ kind: 'add', members: [carlos] }, large).memberCount).toBe(901)
    expect(changed({ kind: 'remove', members: [bia] }, large).memberCount).toBe(899)
  })
})

test('who may write follows from the role and the setting', () => {
  const asAdmin = { ...GROUP, adminsOnly: true, members: [{ ...own, role: 'admin' as const }] }
  expect(factsOf(GROUP, SELF)).toEqual({ subject: 'Team', memberCount: 3, isAdmin: false, canSend: true })
  expect(factsOf({ ...GROUP, adminsOnly: true }, SELF)).toMatchObject({ isAdmin: false, canSend: false })
  expect(factsOf(asAdmin, SELF)).toMatchObject({ isAdmin: true, canSend: true })
  expect(factsOf({ ...asAdmin, isCommunity: true }, SELF)).toMatchObject({ canSend: false })
})
