import type { Logger } from 'pino'
import type { PairingCode } from '../../domain/connection/connection.ts'
import type { Link } from '../baileys/link.ts'
import type { Network } from '../baileys/socket-options.ts'
import { NO_CODES, type Status } from './status.ts'

/** How long the first QR code and each later QR code are valid (Baileys `socket.js`). */
const FIRST_QR_MS = 60_000
const NEXT_QR_MS = 20_000
/** Baileys' timer may fire slightly before our clock reaches the end of a code. */
const TOLERANCE_MS = 1_500

interface CodesOptions {
  instanceId: string
  network: Network
  /** A pairing code for this number instead of QR codes. */
  pairingPhone: string | null
  status: Status
  logger: Logger
  now: () => number
}

/** Shows the QR codes or the pairing code while a number is being linked. */
export class Codes {
  readonly #options: CodesOptions
  #shown = 0
  /** WhatsApp has asked for a new code. The reason says so. */
  #replaced = false
  /** When the last code expires (`performance.now()`). */
  #expiresAt = 0
  #qrExpiresAt: number | null = null
  /** The text of the latest QR code. */
  #qr = ''

  constructor(options: CodesOptions) {
    this.#options = options
  }

  /** True if the last code expired unused. WhatsApp's close code (408) does not show it, because it has other causes too. */
  get ranOut(): boolean {
    return this.#shown > 0 && performance.now() >= this.#expiresAt - TOLERANCE_MS
  }

  async show(link: Link, qr: string): Promise<void> {
    const { pairingPhone, now } = this.#options
    const lifetimeMs = this.#shown === 0 ? FIRST_QR_MS : NEXT_QR_MS
    this.#expiresAt = performance.now() + lifetimeMs
    this.#shown += 1
    this.#qr = qr
    if (pairingPhone !== null) {
      // The pairing code stays valid although WhatsApp keeps sending QR codes.
      if (this.#shown > 1) return
      return this.#showPairingCode(link, pairingPhone)
    }
    this.#qrExpiresAt = now() + lifetimeMs
    await this.#showQr(qr)
  }

  /** WhatsApp wants a new code. @param qr null: a pairing code has to be requested again */
  async replace(link: Link, qr: string | null): Promise<void> {
    const { pairingPhone } = this.#options
    this.#replaced = true
    if (pairingPhone === null) return qr === null ? undefined : this.#showQr(qr)
    if (qr === null) await this.#showPairingCode(link, pairingPhone)
  }

  async #showPairingCode(link: Link, phone: string): Promise<void> {
    const pairingCode = await link.requestPairingCode(phone)
    const why = this.#replaced
      ? ({ cause: 'new_code_asked', reason: 'WhatsApp asked for a new code. Type this one on the phone.' } as const)
      : ({
          cause: 'type_pairing_code',
          reason: 'Type the code on the phone: Linked devices, Link with phone number.',
        } as const)
    await this.#options.status.record({ ...NO_CODES, state: 'linking', ...why, pairingCode })
    this.#linkSandbox(this.#qr, { code: pairingCode, phone })
  }

  async #showQr(qr: string): Promise<void> {
    const why = this.#replaced
      ? ({ cause: 'new_code_asked', reason: 'WhatsApp asked for a new code. Scan this one with the phone.' } as const)
      : ({ cause: 'scan_qr_code', reason: 'Scan the QR code with the phone: Linked devices, Link a device.' } as const)
    const shown = { qr, qrExpiresAt: this.#qrExpiresAt }
    await this.#options.status.record({ ...NO_CODES, state: 'linking', ...why, ...shown })
    this.#linkSandbox(qr, null)
  }

  #linkSandbox(qr: string, pairing: PairingCode | null): void {
    const { network, logger, instanceId } = this.#options
    if (network.kind !== 'simulated' || !network.linkBy) return
    network.linkBy(qr, pairing).catch(error => logger.warn({ err: error, instanceId }, 'sandbox.link_failed'))
  }
}
