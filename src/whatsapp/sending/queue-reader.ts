import type { QueuedMessage } from '../../store/messages/messages.ts'
import type { LookFrom, Outbox } from './send-queue.ts'

const PAGE = 256
/** A burst of hints is one read of the queue. */
const READ_EVERY_MS = 20
/** While what is read only stands behind what waits already, reads are made further and further apart. */
const READ_AT_LEAST_EVERY_MS = 160
/** Rows that may be read at a poll only to be passed over: where there are more, several polls share one read. */
const ROWS_PER_POLL = 512
/** So many share one at most. */
const POLLS_PER_READ = 24

export interface QueueReaderOptions {
  outbox: Outbox
  /** The next messages of the queue above `afterSeq`, at most `limit`. */
  readPage(limit: number, afterSeq: number): Promise<QueuedMessage[]>
  /** Nothing is read while nothing can be sent. */
  canSend(): boolean
  /** A page was taken in. */
  onRead(): void
  onFailed(error: unknown): void
}

/** Takes the queue's rows into the outbox, as far as there is room. */
export class QueueReader {
  readonly #options: QueueReaderOptions
  #reading: Promise<void> | null = null
  #timer: NodeJS.Timeout | undefined
  #readAt = Number.NEGATIVE_INFINITY
  #readEveryMs = READ_EVERY_MS
  #started = 0
  /** Since the last that read. */
  #polls = 0
  #stopped = false

  constructor(options: QueueReaderOptions) {
    this.#options = options
  }

  /**
   * New rows may be there.
   * @param to whom the new message is to; it is not read while those before it wait in their rows too
   */
  look(from: LookFrom, to?: string): void {
    const { outbox } = this.#options
    if (to !== undefined && outbox.passOver(to, from)) return
    outbox.lookAgain(from)
    this.read()
  }

  /** Behind the hints, which may be lost. */
  poll(): void {
    this.#polls += 1
    if (this.#options.outbox.passedOver > this.#polls * ROWS_PER_POLL && this.#polls < POLLS_PER_READ) return
    this.#polls = 0
    this.look('start')
  }

  /** The first read happens at once; hints that come in a burst share the next one. */
  read(): void {
    const { outbox, canSend, onFailed } = this.#options
    if (this.#reading || this.#timer || this.#stopped || !outbox.wantsMore || !canSend()) return
    const waitMs = this.#readAt + this.#readEveryMs - performance.now()
    if (waitMs > 0) {
      this.#timer = setTimeout(() => {
        this.#timer = undefined
        this.read()
      }, waitMs)
      return
    }
    this.#readAt = performance.now()
    this.#reading = this.#readOn().catch(onFailed)
  }

  /** A chat's messages are through, and more of them may be stored. */
  readSoon(): void {
    this.#readEveryMs = READ_EVERY_MS
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.read()
  }

  /** A read that leads to a message being sent was not in vain. */
  noteStarted(): void {
    this.#started += 1
  }

  /** Resolves when nothing is being read. */
  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    await this.#reading
  }

  async #readOn(): Promise<void> {
    const { outbox, onRead } = this.#options
    const startedBefore = this.#started
    try {
      await this.#readPages()
    } finally {
      this.#reading = null
      onRead()
      const fruitless = this.#started === startedBefore && outbox.size > 0
      this.#readEveryMs = fruitless ? Math.min(this.#readEveryMs * 2, READ_AT_LEAST_EVERY_MS) : READ_EVERY_MS
      this.read()
    }
  }

  /** Up to the end of the queue, or as much as there is room for. */
  async #readPages(): Promise<void> {
    const { outbox, readPage, canSend, onRead } = this.#options
    let rows: QueuedMessage[]
    outbox.rewind()
    do {
      outbox.beginRead()
      rows = await readPage(PAGE, outbox.scannedTo)
      outbox.endRead(rows, rows.length < PAGE, performance.now())
      onRead()
    } while (rows.length === PAGE && outbox.wantsMore && canSend())
  }
}
