import { setTimeout as sleep } from 'node:timers/promises'
import { type BinaryNode, getBinaryNodeChild, S_WHATSAPP_NET, type WASocket } from 'baileys'
import type { Logger } from 'pino'
import type { LibraryCalls } from '../library-scope.ts'

const MAX_REQUESTS = 3
/** Baileys requests this many stanzas when WhatsApp announces those that it has kept. */
const FIRST_BATCH = 100
/** The size of WhatsApp Web's batches. */
const BATCH = 200
/** The interval between two looks at what has arrived. WhatsApp Web waits as long before it requests a batch. */
const STEP_MS = 100
/** Of the time for an answer: a batch that stops arriving is requested again after a third, and given up after four times. */
const REPEAT_AFTER = 1 / 3
const GIVE_UP_AFTER = 4

interface PendingOptions {
  /** The longest time that WhatsApp takes to answer, in milliseconds. */
  answerMs: number
  calls: LibraryCalls
  logger: Logger
  /** WhatsApp has kept stanzas for us and delivers nothing, although it was asked repeatedly. Called at most once. */
  onStalled(): void
}

/**
 * Requests the stanzas that WhatsApp has kept for us, until it has delivered them all. At login WhatsApp announces how many they are
 * (`offline_preview`), sends the first few, and then only as many as are requested (`offline_batch`). It delivers new stanzas
 * only after the kept ones. Baileys requests one batch.
 */
export class PendingMessages {
  readonly #socket: WASocket
  readonly #options: PendingOptions
  #announced = 0
  #arrived = 0
  /** WhatsApp has delivered everything. */
  #isDone = false
  /** A message or receipt that was not kept has arrived, so WhatsApp delivers new ones. */
  #isLive = false

  constructor(socket: WASocket, options: PendingOptions) {
    this.#socket = socket
    this.#options = options
    const { ev, ws } = socket
    const note = (stanza: BinaryNode | Uint8Array) => this.#note(stanza)
    ws.on('frame', note)
    ws.on('CB:ib,,offline_preview', (stanza: BinaryNode) => this.#announce(stanza))
    ev.on('connection.update', ({ receivedPendingNotifications }) => {
      if (!receivedPendingNotifications) return
      this.#isDone = true
      ws.off('frame', note)
    })
  }

  /**
   * Repeats the request to begin, at most three times. Baileys sends it only once, and not at all if an earlier query was not
   * answered. Without it, WhatsApp delivers nothing.
   */
  async begin(): Promise<void> {
    const { answerMs, calls } = this.#options
    const { query, ev } = this.#socket
    for (let requests = 0; requests < MAX_REQUESTS; requests += 1) {
      await sleep(answerMs, undefined, { signal: calls.closed, ref: false })
      if (this.#isDone) return
      const attrs = { to: S_WHATSAPP_NET, type: 'set', xmlns: 'passive' }
      await query({ tag: 'iq', attrs, content: [{ tag: 'active', attrs: {} }] }).catch(() => undefined)
      ev.flush()
    }
  }

  /** Notes a stanza before the driver marks messages as kept. */
  #note(stanza: BinaryNode | Uint8Array): void {
    if (stanza instanceof Uint8Array) return
    if (stanza.attrs['offline'] !== undefined) this.#arrived += 1
    else if (stanza.tag === 'message' || stanza.tag === 'receipt') this.#isLive = true
  }

  #announce(stanza: BinaryNode): void {
    const count = Number(getBinaryNodeChild(stanza, 'offline_preview')?.attrs['count'])
    if (this.#isDone || this.#announced > 0 || !(count > 0)) return
    this.#announced = count
    this.#options.calls.inBackground('batches', () => this.#requestBatches())
  }

  /** Counts steps instead of time, so that a process that was suspended or busy does not give up. */
  async #requestBatches(): Promise<void> {
    const { answerMs, calls, logger, onStalled } = this.#options
    const repeatAfter = Math.ceil((answerMs * REPEAT_AFTER) / STEP_MS)
    const giveUpAfter = Math.ceil((answerMs * GIVE_UP_AFTER) / STEP_MS)
    let requested = FIRST_BATCH
    let arrived = 0
    for (let quietSteps = 0; quietSteps < giveUpAfter; quietSteps += 1) {
      await sleep(STEP_MS, undefined, { signal: calls.closed, ref: false })
      if (this.#isDone) return
      if (this.#arrived > arrived) quietSteps = 0
      arrived = this.#arrived
      const isDue = arrived >= requested || (quietSteps > 0 && quietSteps % repeatAfter === 0)
      if (!isDue) continue
      requested = arrived + BATCH
      const batch = { tag: 'offline_batch', attrs: { count: BATCH.toString() } }
      await this.#socket.sendNode({ tag: 'ib', attrs: {}, content: [batch] })
    }
    if (this.#isLive || arrived >= this.#announced) return
    logger.warn({ announced: this.#announced, arrived }, 'whatsapp.kept_messages_withheld')
    onStalled()
  }
}
