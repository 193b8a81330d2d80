import { type BinaryNode, getBinaryNodeChild, getBinaryNodeChildren, S_WHATSAPP_NET } from 'baileys'
import { type MediaConnection, UploadFailed } from './upload.ts'

/**
 * The media hosts that WhatsApp names, and the authorization for them. Baileys has the same query, but after one
 * unanswered query it fails for as long as the socket lives.
 */
export class MediaConnections {
  readonly #query: (node: BinaryNode) => Promise<BinaryNode>
  #known: { connection: MediaConnection; until: number } | null = null

  constructor(query: (node: BinaryNode) => Promise<BinaryNode>) {
    this.#query = query
  }

  /** @param renew the known authorization has expired */
  async get(renew: boolean): Promise<MediaConnection> {
    const known = this.#known
    if (known !== null && !renew && performance.now() < known.until) return known.connection
    const attrs = { type: 'set', xmlns: 'w:m', to: S_WHATSAPP_NET }
    const query = this.#query({ tag: 'iq', attrs, content: [{ tag: 'media_conn', attrs: {} }] })
    const answer = await query.catch(error => {
      throw new UploadFailed(`WhatsApp names no media host: ${error}`)
    })
    const node = getBinaryNodeChild(answer, 'media_conn')
    const { auth, ttl } = node?.attrs ?? {}
    if (auth === undefined) throw new UploadFailed('WhatsApp gave no authorization for uploads.')
    const hosts = getBinaryNodeChildren(node, 'host').map(host => ({ hostname: host.attrs['hostname'] ?? '' }))
    const connection = { hosts, auth }
    this.#known = { connection, until: performance.now() + Number(ttl ?? 0) * 1_000 }
    return connection
  }
}
