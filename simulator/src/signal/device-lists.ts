import { proto } from 'baileys/WAProto/index.js'
import type { Account } from '../account.ts'
import { digestDigits, lidJid, pnJid } from '../addresses.ts'
import { createMessageId } from '../contacts/content.ts'
import type { Network } from '../network.ts'
import { release } from '../server/delivery.ts'
import { type Node, node, seconds } from '../wire/nodes.ts'
import { sign } from './keys.ts'

const KEY_INDEX_LIST_SIGNATURE = Buffer.from([6, 2])
const RAW_ID_DIGITS = 9

/** Identifies a registration of the phone. Everything that the phone signs about its devices contains the same value. */
export function rawIdOf(phone: string): number {
  return Number(digestDigits(`registration of ${phone}`, RAW_ID_DIGITS))
}

/** The devices of a user, with the list of valid ones that the phone has signed. */
export function devicesNode(network: Network, account: Account, number: string): Node {
  const linked = linkedDevices(network, account, number)
  const devices = linked.map(device => node('device', { id: `${device}`, 'key-index': `${device}` }))
  const list = linked.length > 0 ? signedList(network.findAccount(number) ?? account, number, linked) : undefined
  return node('devices', {}, [
    node('device-list', {}, [node('device', { id: '0' }), ...devices]),
    node('key-index-list', { ts: seconds(Date.now()) }, list),
  ])
}

function signedList(scope: Account, number: string, linked: readonly number[]): Uint8Array {
  const list = {
    rawId: rawIdOf(number),
    timestamp: Math.floor(Date.now() / 1000),
    currentIndex: Math.max(...linked),
    validIndexes: [0, ...linked],
    accountType: proto.ADVEncryptionType.E2EE,
  }
  const details = proto.ADVKeyIndexList.encode(list).finish()
  const { privateKey } = scope.devices.get(number).identity
  const accountSignature = sign(privateKey, Buffer.concat([KEY_INDEX_LIST_SIGNATURE, details]))
  return proto.ADVSignedKeyIndexList.encode({ details, accountSignature }).finish()
}

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
