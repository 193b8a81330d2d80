import { randomBytes } from 'node:crypto'
import type { AuthenticationCreds, BinaryNode, WASocket } from 'baileys'
import type { LinkingObstacle } from '../link-end.ts'

/** WhatsApp asks for this many new codes during one attempt. After that, another code does not help. */
const MAX_NEW_CODES = 3
const SECRET_BYTES = 32
/** A phone confirms within a minute (WhatsApp's own clients), which is four times the default time for a query. */
const CONFIRM_WITHIN_QUERIES = 4
/** WhatsApp's error for a limit that is reached (`resource-limit`). */
const LIMIT_REACHED = 419

export interface LinkingWatchOptions {
  creds: AuthenticationCreds
  closed: AbortSignal
  queryTimeoutMs: number
  /** Another code cannot help: the link must end. */
  onObstacle(obstacle: LinkingObstacle): void
  /** WhatsApp wants a new code: this QR code, or another pairing code if `qr` is null. */
  onNewCode(qr: string | null): void
}

/**
 * Watches the linking of a number and recognizes why it fails. Baileys handles none of these stanzas.
 *
 * - `greeted`: WhatsApp has answered the handshake. `answered`: it has sent a stanza after it.
 * - `phoneTookPart`: a phone has typed the pairing code, or has confirmed the linking.
 */
export class LinkingWatch {
  readonly #options: LinkingWatchOptions
  readonly #socket: WASocket
  #greeted = false
  #answered = false
  #phoneTookPart = false
  #newCodes = 0
  #qr: string | null = null
  #timer: NodeJS.Timeout | undefined

  constructor(socket: WASocket, options: LinkingWatchOptions) {
    this.#socket = socket
    this.#options = options
    const { ws } = socket
    ws.on('frame', (frame: BinaryNode | Uint8Array) => {
      this.#greeted = true
      if (!(frame instanceof Uint8Array) && frame.tag !== 'xmlstreamend') this.#answered = true
    })
    ws.on('CB:notification', (node: BinaryNode) => this.#notified(node))
    ws.on('CB:iq,type:error', (node: BinaryNode) => this.#refused(node))
    ws.prependListener('CB:iq,,pair-success', () => {
      this.#phoneTookPart = true
      clearTimeout(this.#timer)
    })
    options.closed.addEventListener('abort', () => clearTimeout(this.#timer), { once: true })
  }

  /** The text of a QR code with the current secret. Baileys keeps using the first one. */
  withSecret(qr: string): string {
    const fields = qr.split(',')
    fields[3] = this.#options.creds.advSecretKey
    this.#qr = fields.join(',')
    return this.#qr
  }

  /** Why the linking has failed, if the socket ends before a phone has linked it. */
  get obstacleAtEnd(): LinkingObstacle | undefined {
    if (this.#phoneTookPart) return 'unfinished'
    return this.#greeted && !this.#answered ? 'hung_up' : undefined
  }

  #notified(node: BinaryNode): void {
    switch (node.attrs['type']) {
      case 'passkey_prologue_request':
        this.#acknowledge(node)
        this.#options.onObstacle('passkey')
        break
      case 'companion_reg_refresh':
        this.#acknowledge(node)
        this.#refresh(false)
        break
      case 'link_code_companion_reg':
        this.#codeTyped(node)
    }
  }

  #codeTyped({ content }: BinaryNode): void {
    const [request] = Array.isArray(content) ? content : []
    const stage = request?.attrs['stage']
    if (stage === 'refresh_code') this.#refresh(true)
    if (stage !== 'primary_hello') return
    this.#phoneTookPart = true
    this.#timer ??= setTimeout(
      () => this.#options.onObstacle('phone_silent'),
      CONFIRM_WITHIN_QUERIES * this.#options.queryTimeoutMs,
    ).unref()
  }

  /** While linking we ask only for a pairing code, and finish with it. Keep-alive queries are not refused. */
  #refused({ content }: BinaryNode): void {
    const [error] = Array.isArray(content) ? content : []
    if (Number(error?.attrs['code']) === LIMIT_REACHED) this.#options.onObstacle('device_limit')
    else this.#options.onObstacle(this.#phoneTookPart ? 'unfinished' : 'device_refused')
  }

  #refresh(byPairingCode: boolean): void {
    const { creds, onObstacle, onNewCode } = this.#options
    if (++this.#newCodes > MAX_NEW_CODES) onObstacle('unfinished')
    else if (byPairingCode) onNewCode(null)
    // Otherwise the phone has the secret of the typed code already.
    else if (!this.#phoneTookPart) {
      creds.advSecretKey = randomBytes(SECRET_BYTES).toString('base64')
      if (this.#qr !== null) onNewCode(this.withSecret(this.#qr))
    }
  }

  /** Baileys' own acknowledgement needs the account's address, which exists only with a pairing code. */
  #acknowledge({ attrs: { id, from, type } }: BinaryNode): void {
    if (this.#options.creds.me || !id || !from) return
    const ack: BinaryNode = { tag: 'ack', attrs: { class: 'notification', id, to: from, ...(type && { type }) } }
    this.#socket.sendNode(ack).catch(() => undefined)
  }
}
