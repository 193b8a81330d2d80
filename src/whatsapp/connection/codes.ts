import type { Logger } from 'pino'
import type { Link } from '../baileys/link.ts'
import type { Network } from '../baileys/socket-options.ts'
import { NO_CODES, type Status } from './status.ts'

/** WhatsApp's life of a QR code: the first one, then each next (Baileys `socket.js`). */
const FIRST_QR_MS = 60_000
const NEXT_QR_MS = 20_000
/** Codes run out on Baileys' timer and on our clock at the same moment. */
const TOLERANCE_MS = 1_500

export interface CodesOptions {
  instanceId: string
  network: Network
  /** A pairing code for this number instead of QR codes. */
  pairingPhone: string | null
  status: Status
  logger: Logger
  now: () => number
}

/** The codes that are shown while a number is linked, one after another. */
export class Codes {
  readonly #options: CodesOptions
  #shown = 0
  /** On the clock that never jumps. */
  #endsAt = 0

  constructor(options: CodesOptions) {
    this.#options = options
  }

  /** Nobody used the last one; told by the clock, since WhatsApp's close code (408) has other meanings too. */
  get ranOut(): boolean {
    return this.#shown > 0 && performance.now() >= this.#endsAt - TOLERANCE_MS
  }

  async show(link: Link, qr: string): Promise<void> {
    const { pairingPhone, status, now } = this.#options
    const lastsMs = this.#shown === 0 ? FIRST_QR_MS : NEXT_QR_MS
    this.#endsAt = performance.now() + lastsMs
    this.#shown += 1
    if (pairingPhone !== null) {
      // One code for the whole linking; WhatsApp goes on offering QR codes beside it.
      if (this.#shown > 1) return
      const pairingCode = await link.requestPairingCode(pairingPhone)
      const reason = 'Type the code on the phone: Linked devices, Link with phone number.'
      return status.record({ ...NO_CODES, state: 'linking', cause: 'type_pairing_code', reason, pairingCode })
    }
    const reason = 'Scan the QR code with the phone: Linked devices, Link a device.'
    const shown = { qr, qrExpiresAt: now() + lastsMs }
    await status.record({ ...NO_CODES, state: 'linking', cause: 'scan_qr_code', reason, ...shown })
    this.#scan(qr)
  }

  #scan(qr: string): void {
    const { network, logger, instanceId } = this.#options
    if (network.kind !== 'simulated' || !network.linkBy) return
    network.linkBy(qr).catch(error => logger.warn({ err: error, instanceId }, 'sandbox.scan_failed'))
  }
}
