/** Everybody who acts in a group, and how a change reaches the members' accounts. */
import type { Account } from '../account.ts'
import type { Network } from '../network.ts'
import { release } from '../server/delivery.ts'
import { type Node, seconds } from '../wire/nodes.ts'
import type { Answer, Asker } from './asker.ts'
import { createMessageId } from './content.ts'
import type { Group } from './group-types.ts'
import { groupNotification, groupOf, isAdminOf, isMember } from './groups.ts'

/** Who acts in a group: an account through its client, or a contact. */
export interface GroupActor {
  network: Network
  /** An account that is in the group, or was. It knows the group. */
  account: Account
  number: string
}

export type GroupQuery = (actor: GroupActor, iq: Node) => Promise<Answer> | Answer

/** Answers the query of a client. Changes of groups happen one after the other. */
export function byClient(query: GroupQuery): (asker: Asker, iq: Node) => Promise<Answer> {
  return ({ network, account }, iq) =>
    network.changeGroup(async () => query({ network, account, number: account.phone }, iq))
}

/** The group as the actor knows it, if it is a member. */
export function ownGroup({ account, number }: GroupActor, group: string): Group | null {
  if (!isMember(account, group)) return null
  const known = groupOf(account, group)
  return known.members.some(member => member.number === number) ? known : null
}

/** Stores the changed group in the account of every member and of the `others`. Resolves once all have it. */
export async function share(
  { network, number: actor }: Pick<GroupActor, 'network' | 'number'>,
  group: string,
  changed: Group,
  /** Null: the group has changed for this number without a notification. */
  noticeFor: (number: string) => Node | null,
  others: readonly string[] = [],
): Promise<void> {
  for (const number of new Set([...changed.members.map(member => member.number), ...others])) {
    const account = network.findAccount(number)
    await account?.applyDurably(() => {
      account.setCreatedGroup(group, changed)
      const notice = noticeFor(number)
      if (!account.companion || !notice) return []
      const now = Date.now()
      const notification = groupNotification(group, actor, createMessageId(), seconds(now), notice)
      return [release(network, account, account.queue.add(notification, now))]
    })
  }
}

/** A notice that only admins get. */
export function forAdmins(group: Group, notice: Node): (number: string) => Node | null {
  return number => (isAdminOf(group, number) ? notice : null)
}

/** The group as an account in it knows it. */
export function findGroup(network: Network, id: string): Group | null {
  for (const account of network.accounts())
    if (account.createdGroups.has(id) && isMember(account, id)) return groupOf(account, id)
  return null
}

/** The group with this invitation code, as an account in it knows it, now or before the code was revoked. */
export function findInvited(network: Network, code: string): { id: string; group: Group; isRevoked: boolean } | null {
  for (const account of network.accounts()) {
    for (const [id, group] of account.createdGroups) {
      if (!isMember(account, id)) continue
      if (group.invite === code) return { id, group, isRevoked: false }
      if (group.revokedInvites?.includes(code)) return { id, group, isRevoked: true }
    }
  }
  return null
}
