/** What a client asks about groups. */
import { isGroup } from '../addresses.ts'
import { type Answer, type Asker, FORBIDDEN, NOT_FOUND } from '../contacts/asker.ts'
import { groupNode, groupOf, isMember } from '../contacts/groups.ts'
import { type Node, node } from '../wire/nodes.ts'

export function answerGroup({ account }: Asker, { attrs: { to } }: Node): Answer {
  if (!isGroup(to)) return NOT_FOUND
  // whatsmeow: 403 means "not a participant of the group", 404 "no such group"
  if (!isMember(account, to)) return FORBIDDEN
  return [groupNode(to, groupOf(account, to))]
}

export function answerGroups({ account }: Asker): Answer {
  const known = [...account.groupMembers.keys(), ...account.createdGroups.keys()].filter(group =>
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
