import { type Static, Type } from 'typebox'
import type { InstanceId } from '../domain/ids.ts'
import type { Directory } from '../store/directory/directory.ts'
import { checkFilterText } from './input.ts'
import { contactView, groupView, searchQuery } from './resources/conversation/directory.ts'
import { pageQuery, pageRequest } from './resources/page.ts'

/** Both APIs list groups and contacts in the same way. */
export const groupsQuery = Type.Object({
  ...pageQuery,
  search: searchQuery('Only groups whose name contains this, without regard to case and accents.'),
})

export const contactsQuery = Type.Object({
  ...pageQuery,
  search: searchQuery(
    'Only contacts whose number or one of whose names contains this, without regard to case and accents.',
  ),
})

type Query = Static<typeof contactsQuery>

export async function readGroups(directory: Directory, instanceId: InstanceId, query: Query) {
  const { data, nextCursor } = await directory.listGroups(instanceId, pageRequest(query), searchIn(query))
  return { data: data.map(groupView), nextCursor }
}

export async function readContacts(directory: Directory, instanceId: InstanceId, query: Query) {
  const { data, nextCursor } = await directory.listContacts(instanceId, pageRequest(query), searchIn(query))
  return { data: data.map(contactView), nextCursor }
}

function searchIn({ search }: Query): string | undefined {
  if (search !== undefined) checkFilterText('search', search)
  return search
}
