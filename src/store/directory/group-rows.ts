import type { Selectable } from 'kysely'
import { factsOf, type GroupDetails, type OwnAddresses } from '../../domain/recipients/group.ts'
import type { GroupsTable } from '../engine/schema/directory.ts'
import { searchedAs } from '../engine/search-patterns.ts'
import type { KnownGroup, ListedGroup } from './directory.ts'
import { type KnownNotices, NO_NOTICES } from './known-notices.ts'

type GroupRow = Selectable<GroupsTable>

/** The columns of `groups` that follow from its details. */
export function columnsOf(details: GroupDetails, self: OwnAddresses, notices: KnownNotices) {
  const { id: _, subject, ...rest } = details
  const { memberCount, canSend, isAdmin } = factsOf(details, self)
  return {
    member: 1,
    search_name: searchedAs(subject),
    subject: JSON.stringify(subject),
    member_count: memberCount,
    can_send: Number(canSend),
    is_admin: Number(isAdmin),
    details: JSON.stringify({ ...rest, notices }),
  }
}

/** Nothing about the group has to be queried. */
export const NOT_DUE = { query_due_at: null, has_joined: 0 } as const

/** The subject of a group that WhatsApp has not described. */
export const UNNAMED = { search_name: '', subject: '""' } as const

/** The columns of a group that the account is not a member of. A group that it has left keeps its subject. */
export function noMember(notices: KnownNotices) {
  return { member: 0, member_count: 0, can_send: 0, is_admin: 0, details: JSON.stringify({ notices }) }
}

export function toDetails({
  id,
  member,
  subject,
  details,
}: Pick<GroupRow, 'id' | 'member' | 'subject' | 'details'>): GroupDetails | null {
  if (member === 0) return null
  const { notices: _, ...rest } = JSON.parse(details)
  return { ...rest, id, subject: JSON.parse(subject) }
}

export function noticesOf(row: Pick<GroupRow, 'details'> | undefined): KnownNotices {
  // A row of the previous version has none.
  return (row && (JSON.parse(row.details).notices as KnownNotices | undefined)) ?? NO_NOTICES
}

export function toKnown(
  row: Pick<GroupRow, 'id' | 'member' | 'subject' | 'details' | 'as_of' | 'queried_at'>,
): KnownGroup {
  return { details: toDetails(row), asOf: row.as_of, queriedAt: row.queried_at }
}

export const LISTED = ['id', 'subject', 'member_count', 'can_send', 'is_admin', 'as_of', 'search_name'] as const

export function toListed(row: Pick<GroupRow, (typeof LISTED)[number]>): ListedGroup {
  return {
    id: row.id,
    subject: JSON.parse(row.subject),
    memberCount: row.member_count,
    canSend: row.can_send === 1,
    isAdmin: row.is_admin === 1,
    asOf: row.as_of,
  }
}
