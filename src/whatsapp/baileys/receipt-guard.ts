import { type BinaryNode, type GroupMetadata, getBinaryNodeChildren, isJidGroup } from 'baileys'
import type { PreparedMessage } from '../../store/messages/messages.ts'
import { isSelf, type Self } from './addresses.ts'
import type { Correspondents } from './correspondents.ts'

export interface ReceiptGuardOptions {
  correspondents: Correspondents
  self(): Self
  findSent(whatsappId: string): Promise<PreparedMessage | null>
  findLid(address: string): Promise<string | null>
  findGroup(group: string): Promise<GroupMetadata>
}

/** Anybody can name a message by its id. Only whom it was sent to can say anything of it, or have it sent again. */
export class ReceiptGuard {
  readonly #options: ReceiptGuardOptions

  constructor(options: ReceiptGuardOptions) {
    this.#options = options
  }

  /** Whether the message went to the chat that this JID names. */
  async isAbout(whatsappId: string, chat: string): Promise<PreparedMessage | null> {
    const { correspondents, findSent, findLid } = this.#options
    const sent = await findSent(whatsappId)
    return sent && (await correspondents.isSame(chat, sent.address, findLid)) ? sent : null
  }

  /** Whether what a retry receipt asks for may be sent to the one who asks. */
  async mayResend(stanza: BinaryNode): Promise<boolean> {
    const { id, from, participant } = stanza.attrs
    if (!id || !from) return false
    // Our own other devices read all that we write.
    if (isSelf(participant ?? from, this.#options.self())) return true
    const [list] = getBinaryNodeChildren(stanza, 'list')
    const ids = [id, ...getBinaryNodeChildren(list, 'item').map(item => item.attrs['id'] ?? '')]
    for (const one of ids) if (!(await this.isAbout(one, from))) return false
    return isJidGroup(from) ? this.#isMember(from, participant) : true
  }

  async #isMember(group: string, participant: string | undefined): Promise<boolean> {
    if (!participant) return false
    const addresses = await this.#options.correspondents.addressesOf(participant)
    // Where WhatsApp does not list the members: it does not pass on receipts of others.
    const metadata = await this.#options.findGroup(group).catch(() => null)
    if (!metadata) return true
    const known = await Promise.all(
      metadata.participants
        .flatMap(({ id, lid, phoneNumber }) => [id, lid, phoneNumber])
        .filter(jid => jid !== undefined && jid !== '')
        .map(jid => this.#options.correspondents.addressesOf(jid!)),
    )
    return known.flat().some(address => addresses.includes(address))
  }
}
