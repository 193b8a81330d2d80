import { type BinaryNode, type GroupMetadata, getBinaryNodeChildren, isJidGroup } from 'baileys'
import type { PreparedMessage } from '../../../store/messages/messages.ts'
import { isSelf, type Self } from '../addresses.ts'
import type { Correspondents } from '../correspondents.ts'
import { alternateOf } from '../parsing/receipt.ts'

interface ReceiptGuardOptions {
  correspondents: Correspondents
  self(): Self
  findSent(whatsappId: string): Promise<PreparedMessage | null>
  findLid(address: string, expected: string): Promise<string | null>
  findGroup(group: string): Promise<GroupMetadata | undefined>
  /** Asks WhatsApp about the group, unless it was asked a moment ago. */
  refreshGroup(group: string): Promise<void>
}

/** Anybody can send a receipt for any message ID. This accepts receipts and retry requests only from the recipient. */
export class ReceiptGuard {
  readonly #options: ReceiptGuardOptions

  constructor(options: ReceiptGuardOptions) {
    this.#options = options
  }

  /** The message, if it was sent to this chat. @param alternate another address of the person */
  async isAbout(whatsappId: string, chat: string, alternate: string | undefined): Promise<PreparedMessage | null> {
    const { correspondents, findSent, findLid } = this.#options
    const sent = await findSent(whatsappId)
    if (!sent) return null
    const known = alternate === undefined ? [] : await correspondents.addressesOf(alternate)
    return known.includes(sent.address) || (await correspondents.isSame(chat, sent.address, findLid)) ? sent : null
  }

  /** True if the messages of a retry request may be sent again to its sender. */
  async mayResend(stanza: BinaryNode): Promise<boolean> {
    const { id, from, participant } = stanza.attrs
    if (!id || !from) return false
    // Our own other devices receive all our messages.
    if (isSelf(participant ?? from, this.#options.self())) return true
    const [list] = getBinaryNodeChildren(stanza, 'list')
    const ids = [id, ...getBinaryNodeChildren(list, 'item').map(item => item.attrs['id'] ?? '')]
    for (const one of ids) if (!(await this.isAbout(one, from, alternateOf(stanza)))) return false
    return isJidGroup(from) ? this.#isMember(from, participant) : true
  }

  async #isMember(group: string, participant: string | undefined): Promise<boolean> {
    if (!participant) return false
    // Without a list of members we rely on WhatsApp, which forwards receipts of members only.
    if ((await this.#isListed(group, participant)) ?? true) return true
    // The notification about a new member may have been missed.
    await this.#options.refreshGroup(group)
    return (await this.#isListed(group, participant)) ?? false
  }

  /** @returns null if the members are not known */
  async #isListed(group: string, participant: string): Promise<boolean | null> {
    const addresses = await this.#options.correspondents.addressesOf(participant)
    const metadata = await this.#options.findGroup(group).catch(() => undefined)
    if (!metadata) return null
    const known = await Promise.all(
      metadata.participants
        .flatMap(({ id, lid, phoneNumber }) => [id, lid, phoneNumber])
        .filter(jid => jid !== undefined && jid !== '')
        .map(jid => this.#options.correspondents.addressesOf(jid!)),
    )
    return known.flat().some(address => addresses.includes(address))
  }
}
