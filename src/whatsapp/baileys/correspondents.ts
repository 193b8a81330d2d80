import { isJidGroup, jidNormalizedUser, S_WHATSAPP_NET } from 'baileys'
import { lidOf, numberOf } from './addresses.ts'
import type { CredentialStore } from './signal/credential-store.ts'

/** Finds the LID of a number. May query WhatsApp if it is not the expected one. */
type FindLid = (address: string, expected: string) => Promise<string | null>

/** Resolves addresses. On WhatsApp a person has two addresses, a number and a LID. A group has one address. */
export class Correspondents {
  readonly #rows: Pick<CredentialStore, 'read'>

  /** @param rows the store of the mapping between numbers and LIDs */
  constructor(rows: Pick<CredentialStore, 'read'>) {
    this.#rows = rows
  }

  /** All known addresses of a person or group, without the device. */
  async addressesOf(jid: string): Promise<readonly string[]> {
    if (isJidGroup(jid)) return [jid]
    const number = numberOf(jid)
    if (number !== undefined) {
      const lid = await this.#mapped(number)
      return [`${number}${S_WHATSAPP_NET}`, ...(lid ? [`${lid}@lid`] : [])]
    }
    const lid = lidOf(jid)
    if (lid === undefined) return [jidNormalizedUser(jid)]
    const mapped = await this.#mapped(`${lid}_reverse`)
    // The number may have another LID by now (`signal/lid-mapping.ts`).
    const isCurrent = mapped !== undefined && (await this.#mapped(mapped)) === lid
    return [`${lid}@lid`, ...(isCurrent ? [`${mapped}${S_WHATSAPP_NET}`] : [])]
  }

  /** True if a JID belongs to this address. Queries WhatsApp if the mapping does not say so and has no number for the JID. */
  async isSame(jid: string, address: string, findLid: FindLid): Promise<boolean> {
    const known = await this.addressesOf(jid)
    if (known.includes(address)) return true
    const lid = lidOf(jid)
    if (lid === undefined || known.length > 1 || numberOf(address) === undefined) return false
    return lidOf(await findLid(address, lid).catch(() => null)) === lid
  }

  async #mapped(id: string): Promise<string | undefined> {
    const value = (await this.#rows.read('lid-mapping', [id])).get(id)
    return typeof value === 'string' ? value : undefined
  }
}
