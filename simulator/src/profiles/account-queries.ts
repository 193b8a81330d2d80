/** A client's queries about its account's block list, privacy settings and default timer of disappearing messages. */
import { createHash } from 'node:crypto'
import type { Account } from '../account.ts'
import { lidJid, parseAddress, pnJid } from '../addresses.ts'
import { type Answer, type Asker, BAD_REQUEST } from '../contacts/asker.ts'
import { child, type Node, node } from '../wire/nodes.ts'
import { ownNotice } from './notices.ts'
import { PRIVACY, type PrivacyCategory } from './settings.ts'

export function listBlocked({ account }: Asker): Answer {
  return [blockList(account)]
}

export async function changeBlocked({ network, account }: Asker, iq: Node): Promise<Answer> {
  const { action, jid, pn_jid } = child(iq, 'item')?.attrs ?? {}
  const address = parseAddress(jid)
  // WhatsApp refuses to block somebody who is named by the number alone.
  const isComplete = address?.lid && (action === 'unblock' || parseAddress(pn_jid)?.number === address.number)
  if (!address || !isComplete || (action !== 'block' && action !== 'unblock')) return BAD_REQUEST
  await account.applyDurably(() => {
    const { settings } = account
    const before = hashOf(settings.blocked)
    const others = settings.blocked.filter(number => number !== address.number)
    settings.blocked = action === 'block' ? [...others, address.number] : others
    const item = node('item', { jid: lidJid(address.number), action })
    const attrs = { action: 'modify', dhash: hashOf(settings.blocked), prev_dhash: before }
    return ownNotice(network, account, node('blocklist', attrs, [item]))
  })
  return [blockList(account)]
}

function blockList({ settings: { blocked } }: Account): Node {
  const items = blocked.map(number => node('item', { jid: lidJid(number), pn_jid: pnJid(number) }))
  return node('list', { dhash: hashOf(blocked), addressing_mode: 'lid' }, items)
}

function hashOf(numbers: readonly string[]): string {
  return createHash('md5')
    .update([...numbers].sort().join())
    .digest('hex')
}

export function listPrivacy({ account }: Asker): Answer {
  const names = Object.keys(PRIVACY) as PrivacyCategory[]
  const settings = names.map(name => node('category', { name, value: account.settings.privacy(name) }))
  return [node('privacy', {}, settings)]
}

export async function changePrivacy({ network, account }: Asker, iq: Node): Promise<Answer> {
  const { name = '', value = '' } = child(child(iq, 'privacy'), 'category')?.attrs ?? {}
  const allowed = (PRIVACY as Record<string, readonly string[]>)[name]
  if (!allowed?.includes(value)) return BAD_REQUEST
  const changed = node('privacy', {}, [node('category', { name, value })])
  await account.applyDurably(() => {
    account.settings.setPrivacy(name as PrivacyCategory, value)
    return ownNotice(network, account, changed)
  })
  return [changed]
}

export async function changeTimer({ network, account }: Asker, iq: Node): Promise<Answer> {
  const duration = Number(child(iq, 'disappearing_mode')?.attrs['duration'])
  if (!Number.isSafeInteger(duration) || duration < 0) return BAD_REQUEST
  const at = Math.floor(Date.now() / 1000)
  await account.applyDurably(() => {
    account.settings.timer = { duration, at }
    const attrs = { duration: duration.toString(), t: at.toString() }
    return ownNotice(network, account, node('disappearing_mode', attrs))
  })
  return []
}
