import type { Account, Effect } from '../account.ts'
import type { Network } from '../network.ts'
import { node, SERVER } from '../wire/nodes.ts'
import { isDue, type QueuedStanza } from '../wire/stanza-queue.ts'

/** The first stanzas, which WhatsApp sends without a request. */
const UNREQUESTED = 5

/** The effect that sends a queued stanza to the account's client: at once, when it is due, or at the next login. */
export function release(network: Network, account: Account, entry: QueuedStanza): Effect {
  return () => {
    const { client } = account
    if (!client?.caughtUp || !account.queue.has(entry) || entry.sentIn === client.login) return
    if (!isDue(entry, Date.now())) return network.agenda.add(entry.dueAt, release(network, account, entry))
    entry.sentIn = client.login
    client.send(entry.stanza)
  }
}

/**
 * Sends a newly logged-in client everything that was queued for it, and announces how much that was. With `batches`, the client
 * has to request all but the first stanzas.
 */
export function catchUp(network: Network, account: Account, markCaughtUp: () => void): void {
  const { client } = account
  if (!client || client.sendBatch) return
  const now = Date.now()
  const due = account.queue.entries().filter(entry => isDue(entry, now) && entry.sentIn !== client.login)
  const announced = due.length.toString()
  let sent = 0
  let isDone = false
  const sendBatch = (count: number) => {
    for (const entry of due.splice(0, count)) {
      if (!account.queue.has(entry)) continue
      entry.sentIn = client.login
      const { tag, attrs, content } = entry.stanza
      client.send(node(tag, { ...attrs, offline: (sent++).toString() }, content))
    }
    if (due.length > 0 || isDone) return
    isDone = true
    client.send(node('ib', { from: SERVER }, [node('offline', { count: sent.toString() })]))
    markCaughtUp()
    for (const entry of account.queue.entries()) release(network, account, entry)()
  }
  if (!network.scenario.batches) {
    sendBatch(due.length)
    return
  }
  client.sendBatch = sendBatch
  client.send(node('ib', { from: SERVER }, [node('offline_preview', { count: announced })]))
  sendBatch(UNREQUESTED)
}
