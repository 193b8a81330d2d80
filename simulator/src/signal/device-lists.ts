import type { Account } from '../account.ts'
import { lidJid, pnJid } from '../addresses.ts'
import { createMessageId } from '../contacts/content.ts'
import type { Network } from '../network.ts'
import { release } from '../server/delivery.ts'
import { node, seconds } from '../wire/nodes.ts'

/** The devices that a user has besides the phone, as `account` sees them. */
export function linkedDevices(network: Network, account: Account, number: string): number[] {
  const owner = network.findAccount(number)
  if (owner) return owner.companion ? [owner.companion.device] : []
  return Array.from({ length: account.devices.companionsOf(number) }, (_, index) => index + 1)
}

/**
 * Notifies the clients that have written to this account that its device list has changed. A client that misses the
 * notification, because its storage failed or this process died, notices when its own copy of the list expires.
 */
export async function announceDevices(network: Network, account: Account): Promise<void> {
  const writers = new Set(account.inboxes.list(account.phone).map(({ from }) => from))
  for (const writer of writers) {
    const other = network.findAccount(writer)
    if (!other?.companion || other === account) continue
    const queued = other.applyDurably(() => {
      const now = Date.now()
      const attrs = { from: pnJid(account.phone), type: 'devices', id: createMessageId(), t: seconds(now) }
      const names = [pnJid(account.phone), lidJid(account.phone)].map(jid => node('device', { jid }))
      const notification = node('notification', attrs, [node('update', {}, names)])
      return [release(network, other, other.queue.add(notification, now))]
    })
    await queued.catch(error => network.log(`the clients were not notified of a device change: ${error.message}`))
  }
}
