import { randomBytes } from 'node:crypto'
import type { AuthenticationCreds, BinaryNode, WASocket } from 'baileys'
import type { PasskeyAnswer } from '../../../domain/connection/passkey.ts'
import type { LinkingObstacle } from '../link-end.ts'
import type { LinkEvents } from './events.ts'
import { type CeremonyStep, PasskeyCeremony } from './passkey-ceremony.ts'

/** After this many new codes that WhatsApp requests in one attempt, another code does not help. */
const MAX_NEW_CODES = 3
const SECRET_BYTES = 32
/** A phone confirms within a minute (WhatsApp's own clients), which is four times the default time for a query. */
const CONFIRM_WITHIN_QUERIES = 4
/** WhatsApp's error for a limit that is reached (`resource-limit`). */
const LIMIT_REACHED = 419
/**
 * Baileys uses one of WhatsApp's references for QR codes every 20 s, even during a ceremony with a passkey, and ends
 * the socket when none is left. It gets spare references, which last longer than the longest ceremony (16 min). Without
 * a ceremony, the first spare reference ends the socket.
 */
const SPARE_REFS = 64
const SPARE_REF = 'spare'

interface LinkingWatchOptions {
  creds: AuthenticationCreds
  closed: AbortSignal
  queryTimeoutMs: number
  /** Whether a number can be linked with a passkey. */
  passkeys: boolean
  /** Runs a part of a ceremony with a passkey. */
  run(work: () => Promise<unknown>): void
  events: Pick<LinkEvents, 'qr' | 'newCode' | 'passkey'>
  /** Another code cannot help: the link must end. */
  onObstacle(obstacle: LinkingObstacle): void
  /** All QR codes have expired. */
  onCodesEnded(): void
}

/**
 * Watches the linking of a number and recognises why it fails. Baileys ignores most of the stanzas that show why.
 *
 * - `greeted`: WhatsApp has answered the handshake. `answered`: it has sent a stanza after the handshake.
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
  #ceremony: PasskeyCeremony | null = null
  #timer: NodeJS.Timeout | undefined

  constructor(socket: WASocket, options: LinkingWatchOptions) {
    this.#socket = socket
    this.#options = options
    const { ws } = socket
    ws.on('frame', (frame: BinaryNode | Uint8Array) => {
      this.#greeted = true
      if (!(frame instanceof Uint8Array) && frame.tag !== 'xmlstreamend') this.#answered = true
    })
    ws.prependListener('CB:iq,type:set,pair-device', addSpareRefs)
    ws.on('CB:notification', (node: BinaryNode) => this.#notified(node))
    ws.on('CB:iq,type:error', (node: BinaryNode) => this.#refused(node))
    ws.prependListener('CB:iq,,pair-success', () => {
      this.#phoneTookPart = true
      this.#ceremony?.confirmed()
      clearTimeout(this.#timer)
    })
    options.closed.addEventListener('abort', () => clearTimeout(this.#timer), { once: true })
  }

  /** Shows a QR code that Baileys has created. */
  show(qr: string): void {
    if (this.#ceremony) return
    if (qr.includes(`#${SPARE_REF},`)) this.#options.onCodesEnded()
    else this.#options.events.qr(this.#withSecret(qr))
  }

  answerPasskey(answer: PasskeyAnswer): void {
    this.#ceremony?.answer(answer)
  }

  /** The text of a QR code with the current secret. Baileys keeps using the first secret. */
  #withSecret(qr: string): string {
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
        this.#passkeyAsked(node)
        break
      case 'crsc_continuation':
        this.#acknowledge(node)
        this.#ceremony?.continued(node)
        break
      case 'companion_reg_refresh':
        this.#acknowledge(node)
        this.#refresh(false)
        break
      case 'link_code_companion_reg':
        this.#codeTyped(node)
    }
  }

  #passkeyAsked(node: BinaryNode): void {
    const { creds, closed, queryTimeoutMs, passkeys, run, events, onObstacle } = this.#options
    if (!passkeys) {
      onObstacle('passkey')
      return
    }
    this.#phoneTookPart = true
    clearTimeout(this.#timer)
    const options = {
      creds,
      closed,
      queryTimeoutMs,
      run,
      onStep: (step: CeremonyStep) => events.passkey(step),
      onObstacle,
    }
    this.#ceremony ??= new PasskeyCeremony(this.#socket, options)
    this.#ceremony.asked(node)
  }

  #codeTyped({ content }: BinaryNode): void {
    const [request] = Array.isArray(content) ? content : []
    const stage = request?.attrs['stage']
    if (stage === 'refresh_code') this.#refresh(true)
    // A ceremony has limits of its own.
    if (stage !== 'primary_hello' || this.#ceremony) return
    this.#phoneTookPart = true
    // The owner may type the code again after an error.
    clearTimeout(this.#timer)
    this.#timer = setTimeout(
      () => this.#options.onObstacle('phone_silent'),
      CONFIRM_WITHIN_QUERIES * this.#options.queryTimeoutMs,
    ).unref()
  }

  /**
   * Outside of a ceremony, a refusal matters only if it is one of the queries that request and complete a pairing code.
   * Of Baileys' queries, only the request for a code has no listener for its answer. An unknown refusal of the last step may
   * follow a mistyped code, so the timer decides.
   */
  #refused({ attrs: { id }, content }: BinaryNode): void {
    if (this.#ceremony || !this.#options.creds.pairingCode) return
    const [error] = Array.isArray(content) ? content : []
    if (Number(error?.attrs['code']) === LIMIT_REACHED) this.#options.onObstacle('device_limit')
    else if (!this.#phoneTookPart && this.#socket.ws.listenerCount(`TAG:${id}`) === 0) {
      this.#options.onObstacle('device_refused')
    }
  }

  #refresh(byPairingCode: boolean): void {
    if (this.#ceremony) return
    const { creds, onObstacle, events } = this.#options
    if (++this.#newCodes > MAX_NEW_CODES) onObstacle('unfinished')
    else if (byPairingCode) {
      // No phone has typed the new code yet.
      this.#phoneTookPart = false
      clearTimeout(this.#timer)
      events.newCode(null)
    }
    // A phone that takes part already has the secret of the code.
    else if (!this.#phoneTookPart) {
      creds.advSecretKey = randomBytes(SECRET_BYTES).toString('base64')
      if (this.#qr !== null) events.newCode(this.#withSecret(this.#qr))
    }
  }

  /** Baileys' own acknowledgement needs the account's address, which exists only with a pairing code. */
  #acknowledge({ attrs: { id, from, type } }: BinaryNode): void {
    if (this.#options.creds.me || !id || !from) return
    const ack: BinaryNode = { tag: 'ack', attrs: { class: 'notification', id, to: from, ...(type && { type }) } }
    this.#socket.sendNode(ack).catch(() => undefined)
  }
}

function addSpareRefs({ content }: BinaryNode): void {
  const [pairDevice] = Array.isArray(content) ? content : []
  if (!Array.isArray(pairDevice?.content)) return
  const spare = { tag: 'ref', attrs: {}, content: Buffer.from(SPARE_REF) }
  pairDevice.content.push(...new Array<BinaryNode>(SPARE_REFS).fill(spare))
}
