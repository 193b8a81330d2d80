/** The alterations that rules make. Each returns a new stanza, because the given one may be in a queue. */
import { lidJid, lidOf, parseAddress, pnJid } from '../addresses.ts'
import { bytes, type Node, node } from '../wire/nodes.ts'
import type { Direction } from './rule.ts'

/**
 * The offset from a ciphertext's end of a byte that its authentication code or signature covers, or that is part of it.
 */
const AUTHENTICATED_AT = 16

/** Flips one bit in every ciphertext. */
export function garbled(stanza: Node): Node {
  const content = stanza.content
  if (stanza.tag === 'enc') {
    const ciphertext = Buffer.from(bytes(stanza) ?? Buffer.alloc(0))
    if (ciphertext.length >= AUTHENTICATED_AT) ciphertext[ciphertext.length - AUTHENTICATED_AT]! ^= 1
    return node(stanza.tag, stanza.attrs, ciphertext)
  }
  return Array.isArray(content) ? node(stanza.tag, stanza.attrs, content.map(garbled)) : stanza
}

/** Removes the attributes and child nodes with these names. */
export function stripped({ tag, attrs, content }: Node, names: readonly string[]): Node {
  const left = Object.fromEntries(Object.entries(attrs).filter(([name]) => !names.includes(name)))
  if (!Array.isArray(content)) return node(tag, left, content)
  return node(
    tag,
    left,
    content.filter(part => !names.includes(part.tag)).map(part => stripped(part, names)),
  )
}

/** Puts an error in place of the devices of this number. */
export function withoutDevicesOf({ tag, attrs, content }: Node, number: string): Node {
  if (!Array.isArray(content)) return node(tag, attrs, content)
  if (tag !== 'user' || parseAddress(attrs['jid'])?.number !== number)
    return node(
      tag,
      attrs,
      content.map(part => withoutDevicesOf(part, number)),
    )
  const devices = node('devices', {}, [node('error', { code: '404', text: 'item-not-found' })])
  return node(
    tag,
    attrs,
    content.map(part => (part.tag === 'devices' ? devices : part)),
  )
}

/** An acknowledgement with this error, or an error in place of any other answer. Other stanzas are unchanged. */
export function failed(stanza: Node, code: string): Node {
  if (stanza.tag === 'ack') return node('ack', { ...stanza.attrs, error: code }, stanza.content)
  if (stanza.tag !== 'iq' || stanza.attrs['type'] !== 'result') return stanza
  return node('iq', { ...stanza.attrs, type: 'error' }, [node('error', { code, text: 'simulated' })])
}

/** The server's answer to a stanza that it refuses with this error. Null if it gives none. */
export function refusalOf({ tag, attrs: { id, to, participant, type } }: Node, code: string): Node | null {
  if (tag === 'message') return node('ack', { class: 'message', id, from: to, participant, error: code })
  if (tag !== 'iq' || (type !== 'get' && type !== 'set')) return null
  return node('iq', { type: 'error', from: to, id }, [node('error', { code, text: 'simulated' })])
}

/** Names the sender, and the recipient of an own copy, by LID or by number, with or without the alternate address. */
export function addressed(stanza: Node, by: 'lid' | 'pn', alternate: boolean): Node {
  const name = stanza.attrs['participant'] === undefined ? 'from' : 'participant'
  const sender = parseAddress(stanza.attrs[name])
  if (!sender) return stanza
  const { sender_pn, sender_lid, participant_pn, participant_lid, peer_recipient_pn, peer_recipient_lid, ...attrs } =
    stanza.attrs
  const recipient = parseAddress(attrs['recipient'])?.number
  const { number, device } = sender
  const other = name === 'from' ? 'sender' : 'participant'
  return node(
    stanza.tag,
    {
      ...attrs,
      [name]: by === 'lid' ? lidJid(number, device) : pnJid(number, device),
      ...(attrs['addressing_mode'] && { addressing_mode: by }),
      ...(alternate && (by === 'lid' ? { [`${other}_pn`]: pnJid(number) } : { [`${other}_lid`]: lidJid(number) })),
      ...(recipient && { recipient: by === 'lid' ? lidJid(recipient) : pnJid(recipient) }),
      ...(recipient &&
        alternate &&
        (by === 'lid' ? { peer_recipient_pn: pnJid(recipient) } : { peer_recipient_lid: lidJid(recipient) })),
    },
    stanza.content,
  )
}

/** Names a number by another LID in what leaves, and by its own in what arrives. */
export function renamed(stanza: Node, { number, lid }: { number: string; lid: string }, direction: Direction): Node {
  const [from, to] = direction === 'out' ? [lidOf(number), lid] : [lid, lidOf(number)]
  const named = new RegExp(`^${from}(?=(_\\d+)?(:\\d+)?@lid$)`)
  const rename = ({ tag, attrs, content }: Node): Node => {
    const entries = Object.entries(attrs).map(([name, value]) => [name, value.replace(named, to)])
    return node(tag, Object.fromEntries(entries), Array.isArray(content) ? content.map(rename) : content)
  }
  return rename(stanza)
}
