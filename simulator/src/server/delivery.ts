import type { Account, Effect } from '../account.ts'
import type { Network } from '../network.ts'
import { node } from '../wire/nodes.ts'
import type { QueuedStanza } from '../wire/stanza-queue.ts'

/** The effect that sends a queued stanza to the account's client: at once, when it is due, or at the next login. */
export function release(network: Network, account: Account, entry: QueuedStanza): Effect {
  return () => {
    const { client } = account
    if (!client?.caughtUp || !account.queue.has(entry) || entry.sentIn === client.login) return
    if (entry.dueAt > Date.now()) return network.agenda.add(entry.dueAt, release(network, account, entry))
    entry.sentIn = client.login
    client.send(entry.stanza)
  }
}

/** Sends a newly logged-in client everything that was queued for it, and announces how much that was. */
export function catchUp(network: Network, account: Account, markCaughtUp: () => void): void {
  const { client } = account
  if (!client) return
  const now = Date.now()
  const entries = account.queue.entries()
  let count = 0
  for (const entry of entries) {
    if (entry.dueAt > now || entry.sentIn === client.login) continue
    entry.sentIn = client.login
    const { tag, attrs, content } = entry.stanza
    client.send(node(tag, { ...attrs, offline: (count++).toString() }, content))
  }
  client.send(node('ib', { from: 's.whatsapp.net' }, [node('offline', { count: count.toString() })]))
  markCaughtUp()
  for (const entry of entries) release(network, account, entry)()
}
