import { setTimeout as sleep } from 'node:timers/promises'
import { type BinaryNode, getBinaryNodeChild, S_WHATSAPP_NET, type WASocket } from 'baileys'
import type { Logger } from 'pino'
import type { LibraryCalls } from '../library-scope.ts'
import type { RetryBudget } from '../signal/retry-budget.ts'

const MAX_REQUESTS = 3
/** Baileys requests this many stanzas when WhatsApp announces those that it has kept. */
const FIRST_BATCH = 100
/** The size of WhatsApp Web's batches. */
const BATCH = 200
/** The interval between two looks at what has arrived. WhatsApp Web waits as long before it requests a batch. */
const STEP_MS = 100
/** Multiples of `answerMs`. A batch that stops arriving is requested again after a third of it, and given up after four times as long. */
const REPEAT_AFTER = 1 / 3
const GIVE_UP_AFTER = 4

interface PendingOptions {
  /** The longest time that WhatsApp takes to answer, in milliseconds. */
  answerMs: number
  calls: LibraryCalls
  logger: Logger
  /** How often a link may end because WhatsApp withholds kept stanzas. */
  logins: Pick<RetryBudget, 'take'>
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
  #requested = FIRST_BATCH
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
    this.#options.calls.inBackground('batches', () => this.#catchUp())
  }

  /** Ends the link if WhatsApp withholds kept stanzas and another login is allowed. Otherwise the link stays open for sending. */
  async #catchUp(): Promise<void> {
    const { answerMs, logger, logins, onStalled } = this.#options
    await this.#requestBatches(answerMs * REPEAT_AFTER)
    for (let rounds = 0; this.#isWithheld; rounds += 1) {
      const closes = logins.take()
      if (closes || rounds === 0) {
        const counts = { announced: this.#announced, arrived: this.#arrived }
        const effect = closes
          ? 'The instance logs in again.'
          : 'The instance only sends. It logs in again within an hour.'
        logger.warn({ ...counts, effect }, 'whatsapp.kept_messages_withheld')
      }
      if (closes) return onStalled()
      await this.#requestBatches(answerMs * GIVE_UP_AFTER)
    }
  }

  get #isWithheld(): boolean {
    return !this.#isDone && !this.#isLive && this.#arrived < this.#announced
  }

  /**
   * Resolves when everything was delivered, or nothing arrives any more. Counts steps instead of time, so that a process that
   * was suspended or busy does not give up.
   * @param repeatMs the time without a stanza after which a batch is requested again
   */
  async #requestBatches(repeatMs: number): Promise<void> {
    const { answerMs, calls } = this.#options
    const repeatAfter = Math.ceil(repeatMs / STEP_MS)
    const giveUpAfter = Math.ceil((answerMs * GIVE_UP_AFTER) / STEP_MS)
    let arrived = this.#arrived
    for (let quietSteps = 1; quietSteps <= giveUpAfter; quietSteps += 1) {
      await sleep(STEP_MS, undefined, { signal: calls.closed, ref: false })
      if (this.#isDone) return
      if (this.#arrived > arrived) quietSteps = 0
      arrived = this.#arrived
      const isDue = arrived >= this.#requested || (quietSteps > 0 && quietSteps % repeatAfter === 0)
      if (!isDue) continue
      this.#requested = arrived + BATCH
      const batch = { tag: 'offline_batch', attrs: { count: BATCH.toString() } }
      await this.#socket.sendNode({ tag: 'ib', attrs: {}, content: [batch] })
    }
  }
}
