import type { QueuedMessage } from '../../store/messages/messages.ts'
import type { ReadFrom, SendQueue } from './send-queue.ts'

const PAGE = 256
/** Hints within this time share one read. */
const MIN_READ_INTERVAL_MS = 20
/** The interval doubles up to this while reads lead to no send. */
const MAX_READ_INTERVAL_MS = 160
/** With more skipped rows than this, several polls share one read. */
const SKIPPED_ROWS_PER_POLL = 512
const MAX_POLLS_PER_READ = 24

export interface QueueReaderOptions {
  sendQueue: SendQueue
  /** The next messages of the queue above `afterSeq`, at most `limit`. */
  readPage(limit: number, afterSeq: number): Promise<QueuedMessage[]>
  /** Nothing is read while this is false. */
  canSend(): boolean
  /** A page was added to the send queue. */
  onRead(): void
  onFailed(error: unknown): void
}

/** Reads queued rows into the send queue while it has space. */
export class QueueReader {
  readonly #options: QueueReaderOptions
  #reading: Promise<void> | null = null
  #timer: NodeJS.Timeout | undefined
  #readAt = Number.NEGATIVE_INFINITY
  #readIntervalMs = MIN_READ_INTERVAL_MS
  #claims = 0
  #pollsSinceRead = 0
  #stopped = false

  constructor(options: QueueReaderOptions) {
    this.#options = options
  }

  /**
   * There may be new rows.
   * @param to recipient of the new message, which is not read while earlier ones to the same recipient are unread
   */
  requestRead(from: ReadFrom, to?: string): void {
    const { sendQueue } = this.#options
    if (to !== undefined && sendQueue.skipNewRow(to, from)) return
    sendQueue.requestRead(from)
    this.read()
  }

  /** Finds new rows whose hint was lost. */
  poll(): void {
    this.#pollsSinceRead += 1
    const polls = this.#pollsSinceRead
    if (this.#options.sendQueue.skippedRows > polls * SKIPPED_ROWS_PER_POLL && polls < MAX_POLLS_PER_READ) return
    this.#pollsSinceRead = 0
    this.requestRead('start')
  }

  /** Reads at once, or when the interval since the last read is over. */
  read(): void {
    const { sendQueue, canSend, onFailed } = this.#options
    if (this.#reading || this.#timer || this.#stopped || !sendQueue.wantsMore || !canSend()) return
    const waitMs = this.#readAt + this.#readIntervalMs - performance.now()
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

  /** A chat ran empty in memory and may have more rows: resets the interval. */
  readSoon(): void {
    this.#readIntervalMs = MIN_READ_INTERVAL_MS
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.read()
  }

  /** A message was claimed, so the read that is under way was useful. */
  noteClaim(): void {
    this.#claims += 1
  }

  /** Resolves when nothing is being read. */
  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    await this.#reading
  }

  async #readOn(): Promise<void> {
    const { sendQueue, onRead } = this.#options
    const claimsBefore = this.#claims
    try {
      await this.#readPages()
    } finally {
      this.#reading = null
      onRead()
      const backsOff = this.#claims === claimsBefore && sendQueue.size > 0
      this.#readIntervalMs = backsOff ? Math.min(this.#readIntervalMs * 2, MAX_READ_INTERVAL_MS) : MIN_READ_INTERVAL_MS
      this.read()
    }
  }

  /** Reads to the end of the queue, or until memory is full. */
  async #readPages(): Promise<void> {
    const { sendQueue, readPage, canSend, onRead } = this.#options
    let rows: QueuedMessage[]
    sendQueue.rewind()
    do {
      sendQueue.beginRead()
      rows = await readPage(PAGE, sendQueue.scannedTo)
      sendQueue.endRead(rows, rows.length < PAGE, performance.now())
      onRead()
    } while (rows.length === PAGE && sendQueue.wantsMore && canSend())
  }
}
