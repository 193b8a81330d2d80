/** A client uploads its keys, and asks for the keys of others. */
import type { Account, Effect } from '../account.ts'
import { parseAddress } from '../addresses.ts'
import type { Answer, Asker } from '../contacts/asker.ts'
import { behaviourOf } from '../contacts/behaviour.ts'
import { bundleNodes, takeBundle } from '../contacts/contact-messages.ts'
import type { Network } from '../network.ts'
import { preKeyIn } from '../server/receipts.ts'
import type { KeyBundle, PreKey } from '../signal/signal-device.ts'
import { bytes, child, children, type Node, node } from '../wire/nodes.ts'

export async function uploadKeys({ account }: Asker, iq: Node): Promise<Answer> {
  const keys: PreKey[] = []
  for (const one of children(child(iq, 'list'), 'key')) {
    const key = preKeyIn(one)
    if (!key) return { error: '406', text: 'not-acceptable' }
    keys.push(key)
  }
  const signed = preKeyIn(child(iq, 'skey'))
  const signature = bytes(child(iq, 'skey'), 'signature')
  await account.applyDurably(() => {
    account.addPreKeys(keys)
    if (signed && signature) account.replaceSignedPreKey({ ...signed, signature })
  })
  return []
}

export async function rotateKey({ account }: Asker, iq: Node): Promise<Answer> {
  const skey = child(child(iq, 'rotate'), 'skey')
  const signed = preKeyIn(skey)
  const signature = bytes(skey, 'signature')
  if (!signed || !signature) return { error: '406', text: 'not-acceptable' }
  await account.applyDurably(() => {
    account.replaceSignedPreKey({ ...signed, signature })
  })
  return []
}

export async function answerKeys({ network, account }: Asker, iq: Node): Promise<Answer> {
  const users: Node[] = []
  for (const { attrs } of children(child(iq, 'key'), 'user')) {
    const bundle = await findBundle(network, account, attrs['jid'])
    if (!bundle) {
      users.push(node('user', { jid: attrs['jid'] }, [node('error', { code: '404', text: 'item-not-found' })]))
      continue
    }
    const { registration, keys } = bundleNodes(bundle)
    users.push(node('user', { jid: attrs['jid'] }, [registration, ...keys]))
  }
  return [node('list', {}, users)]
}

async function findBundle(network: Network, account: Account, jid: string | undefined): Promise<KeyBundle | null> {
  const address = parseAddress(jid)
  if (!address || !behaviourOf(address.number).onWhatsApp) return null
  const owner = network.findAccount(address.number)
  if (address.device === 0) return (owner ?? account).devices.get(address.number).bundle()
  if (!owner && address.device <= account.devices.companionsOf(address.number)) {
    return account.devices.get(address.number, address.device).bundle()
  }
  if (owner?.companion?.device !== address.device) return null
  let bundle: KeyBundle | null = null
  await owner.applyDurably(() => {
    const effects: Effect[] = []
    bundle = takeBundle(network, owner, effects)
    return effects
  })
  return bundle
}
