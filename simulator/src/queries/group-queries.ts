/** Clients' queries about groups, and their changes of groups. */
import { isGroup } from '../addresses.ts'
import { type Answer, type Asker, FORBIDDEN, NOT_FOUND } from '../contacts/asker.ts'
import { groupChanges } from '../contacts/group-changes.ts'
import { getInvite, listRequests } from '../contacts/group-invitations.ts'
import { byClient } from '../contacts/group-sharing.ts'
import { groupNode, groupOf, isMember } from '../contacts/groups.ts'
import { type Node, node } from '../wire/nodes.ts'

function answerGroup({ account }: Asker, { attrs: { to } }: Node): Answer {
  if (!isGroup(to)) return NOT_FOUND
  // whatsmeow: 403 means "not a participant of the group", 404 "no such group"
  if (!isMember(account, to)) return FORBIDDEN
  return [groupNode(to, groupOf(account, to))]
}

function answerGroups({ account }: Asker): Answer {
  const known = [...new Set([...account.groupMembers.keys(), ...account.createdGroups.keys()])].filter(group =>
    isMember(account, group),
  )
  return [
    node(
      'groups',
      {},
      known.map(group => groupNode(group, groupOf(account, group))),
    ),
  ]
}

/** The handlers of queries, by the query's type, namespace and first child. */
export const groupQueries: Readonly<Record<string, (asker: Asker, iq: Node) => Promise<Answer> | Answer>> = {
  'get w:g2 query': answerGroup,
  'get w:g2 participating': answerGroups,
  'get w:g2 invite': byClient(getInvite),
  'get w:g2 membership_approval_requests': byClient(listRequests),
  ...Object.fromEntries(Object.entries(groupChanges).map(([name, change]) => [`set w:g2 ${name}`, byClient(change)])),
}
