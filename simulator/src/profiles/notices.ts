/** Notifies clients of a person's changes. */
import type { Account } from '../account.ts'
import { pnJid } from '../addresses.ts'
import { createMessageId } from '../contacts/content.ts'
import type { Network } from '../network.ts'
import { release } from '../server/delivery.ts'
import { type Node, node, seconds } from '../wire/nodes.ts'

/** The other accounts that have written to this one, or that it has written to. */
export function acquaintances(network: Network, account: Account): Account[] {
  return network.accounts().filter(other => other !== account && (hasRead(account, other) || hasRead(other, account)))
}

function hasRead(reader: Account, writer: Account): boolean {
  return reader.inboxes.list(reader.phone).some(({ from }) => from === writer.phone)
}

/** Notifies the account's own client. Call it inside `account.apply` or `applyDurably`. */
export function ownNotice(network: Network, account: Account, content: Node) {
  return notice(network, account, { from: pnJid(account.phone), type: 'account_sync' }, content)
}

/** Queues a notification for the client of the account. Call it inside `account.apply` or `applyDurably`. */
export function notice(network: Network, account: Account, attrs: { from: string; type: string }, content: Node) {
  if (!account.companion) return []
  const now = Date.now()
  const stanza = node('notification', { ...attrs, id: createMessageId(), t: seconds(now) }, [content])
  return [release(network, account, account.queue.add(stanza, now))]
}
