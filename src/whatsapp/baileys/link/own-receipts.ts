import { type BinaryNode, jidNormalizedUser } from 'baileys'
import { isSelf, lidOf, type Self } from '../addresses.ts'

export type Attributes = BinaryNode['attrs']

/**
 * The attributes of the receipt for a copy of a message that the owner wrote to a person or an assistant. Null for other
 * messages. WhatsApp delivers such a copy at every login until it gets this receipt; an acknowledgement does not suffice.
 */
export function ownReceipt({ attrs }: BinaryNode, self: Self): Attributes | null {
  const { id, from, recipient, category } = attrs
  if (!id || !from || !recipient || category === 'peer' || !isSelf(from, self)) return null
  return { id, to: from, recipient: jidNormalizedUser(recipient), type: 'sender' }
}

/**
 * Prepares a copy for Baileys. Baileys takes the other address of the sender, which is our own, for one of the recipient,
 * and takes the form of the recipient's address from that of the sender.
 */
export function nameRecipient({ attrs }: BinaryNode): void {
  delete attrs['sender_pn']
  delete attrs['sender_lid']
  attrs['addressing_mode'] = lidOf(attrs['recipient']) === undefined ? 'pn' : 'lid'
}
