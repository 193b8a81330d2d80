import { backoffMs } from '../../kit/backoff.ts'
import type { Lease } from '../../store/leases/leases.ts'
import type { Messages, QueuedMessage } from '../../store/messages/messages.ts'
import { untilStored } from '../../store/until-stored.ts'
import type { QueuedRows, ReadFrom, SendQueue } from './queue/send-queue.ts'

const FIRST_RETRY_MS = 2_000
const MAX_RETRY_MS = 300_000
/** Finds a file whose hint was lost. */
const LOOK_FOR_FILE_EVERY_MS = 5_000
/** Hints within this time share one read. */
const MIN_READ_INTERVAL_MS = 20
/** The interval doubles up to this while reads lead to no claim. */
const MAX_READ_INTERVAL_MS = 160
/** With more skipped rows than this, several polls share one read. */
const SKIPPED_ROWS_PER_POLL = 512
const MAX_POLLS_PER_READ = 24
/** Sends in flight at the same time, not counting slow ones. */
const MAX_FAST_SENDS = 24
/** A send that takes longer counts as slow: it waits for WhatsApp. */
const SLOW_AFTER_MS = 500
/** Sends in flight at the same time, including slow ones. */
const MAX_SENDS = 512
/**
 * While about this many sends wait for the upload of their file, no other message that needs an upload is claimed, so that messages
 * without files can be sent while the media hosts do not answer.
 */
const MAX_UPLOADING_SENDS = 128

const NEVER = Number.POSITIVE_INFINITY

interface ClaimsOptions {
  lease: Lease
  messages: Pick<Messages, 'listQueued' | 'listQueuedNumbers'>
  /** Ends the retries while the store is unavailable. */
  signal: AbortSignal
  sendQueue: SendQueue
  /** Nothing is read while this is false. */
  canSend(): boolean
  /** A page was added to the send queue. Returns false to stop. */
  onPage(): boolean
  onFailed(error: unknown): void
}

/**
 * The claimable and the claimed messages of one instance. A claim exists in memory only: the row stays queued
 * until the outcome is recorded, and after a crash every claimed message can be claimed again.
 */
export class Claims {
  readonly #options: ClaimsOptions
  readonly #queue: SendQueue
  /** When the first chat that `ready` left out may be tried again; Infinity if there is none. Set once `ready` has visited every chat. */
  nextWakeAt = NEVER
  /** Claims so far. */
  #count = 0
  #reading: Promise<void> | null = null
  #timer: NodeJS.Timeout | undefined
  #readAt = Number.NEGATIVE_INFINITY
  /** The shortest time from one read to the next. */
  #readIntervalMs = MIN_READ_INTERVAL_MS
  #pollsSinceRead = 0
  #stopped = false

  constructor(options: ClaimsOptions) {
    this.#options = options
    this.#queue = options.sendQueue
  }

  /**
   * The next message of each chat that may send now. Chats that failed come last.
   * @param limit while it allows no more uploads, chats whose next message needs one are left out
   */
  *ready(now: number, limit: Pick<SendLimit, 'canUpload'>): Generator<QueuedMessage> {
    const failing: QueuedMessage[] = []
    this.nextWakeAt = NEVER
    for (const { isBusy, messages, notBefore, failures } of this.#queue.chats()) {
      const [message] = messages
      if (isBusy || !message) continue
      if (notBefore > now) this.nextWakeAt = Math.min(this.nextWakeAt, notBefore)
      else if (needsUpload(message) && !limit.canUpload) continue
      else if (failures > 0) failing.push(message)
      else yield message
    }
    yield* failing
  }

  claim(message: QueuedMessage): void {
    this.#queue.chatOf(message)?.claim(message)
    this.#count += 1
  }

  /** The attempt to send the message is over. */
  release(message: QueuedMessage): void {
    this.#queue.unclaim(message)
    if (!this.#queue.chatOf(message)?.messages.length) {
      // The chat ran empty in memory and may have more rows.
      this.#readIntervalMs = MIN_READ_INTERVAL_MS
      clearTimeout(this.#timer)
      this.#timer = undefined
    }
    this.read()
  }

  /** The chat waits, longer after each failure. */
  postpone(message: QueuedMessage): void {
    const chat = this.#queue.chatOf(message)
    if (!chat) return
    const pauseMs = backoffMs(chat.failures, FIRST_RETRY_MS, MAX_RETRY_MS)
    chat.failures += 1
    // Setting the wall clock back must not make the pause longer.
    chat.notBefore = performance.now() + pauseMs
    if (this.#queue.isFull) this.#queue.defer(chat, chat.notBefore)
  }

  /** The chat waits for the file of its first message (`SendQueue.wakeAwaitingFile`). */
  awaitFile(message: QueuedMessage): void {
    const chat = this.#queue.chatOf(message)
    if (!chat) return
    chat.notBefore = performance.now() + LOOK_FOR_FILE_EVERY_MS
    chat.awaitsFile = true
    if (this.#queue.isFull) this.#queue.defer(chat, chat.notBefore)
  }

  // ── Reading ahead ───────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * There may be new rows.
   * @param to recipient of the new message. The message is not read while earlier messages of its chat are unread
   */
  requestRead(from: ReadFrom, to?: string): void {
    this.#queue.requestRead(from, to)
    this.read()
  }

  /** Finds new rows whose hint was lost. */
  poll(): void {
    this.#pollsSinceRead += 1
    const polls = this.#pollsSinceRead
    if (this.#queue.skippedRows > polls * SKIPPED_ROWS_PER_POLL && polls < MAX_POLLS_PER_READ) return
    this.#pollsSinceRead = 0
    this.requestRead('start')
  }

  /** Reads rows while there is space, immediately or when the interval since the last read is over. */
  read(): void {
    const { canSend, onFailed } = this.#options
    if (this.#reading || this.#timer || this.#stopped || !this.#queue.wantsMore || !canSend()) return
    const waitMs = this.#readAt + this.#readIntervalMs - performance.now()
    if (waitMs > 0) {
      this.#timer = setTimeout(() => {
        this.#timer = undefined
        this.read()
      }, waitMs)
      return
    }
    this.#readAt = performance.now()
    this.#reading = this.#readPages().catch(onFailed)
  }

  /** Resolves when nothing is being read. */
  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    await this.#reading
  }

  async #readPages(): Promise<void> {
    const { lease, messages, signal, onPage } = this.#options
    const { instanceId } = lease
    const countBefore = this.#count
    try {
      const queued: QueuedRows = {
        list: (afterSeq, limit) => untilStored(() => messages.listQueued(instanceId, limit, afterSeq), signal),
        listNumbers: (...range) => untilStored(() => messages.listQueuedNumbers(instanceId, ...range), signal),
      }
      await this.#queue.read(queued, onPage)
    } finally {
      this.#reading = null
      const isIdle = this.#count === countBefore && this.#queue.size > 0
      this.#readIntervalMs = isIdle ? Math.min(2 * this.#readIntervalMs, MAX_READ_INTERVAL_MS) : MIN_READ_INTERVAL_MS
      this.read()
    }
  }
}

/** A prepared message refers to a file that is already uploaded. */
function needsUpload({ file, prepared }: QueuedMessage): boolean {
  return file !== undefined && prepared === null
}

/** The right to have one send in flight. */
export interface Permit {
  /** Call exactly once. */
  release(): void
}

/** Limits the sends of one instance. A send that takes long stops counting against the limit of fast ones. */
export class SendLimit {
  readonly #onPermit: () => void
  #fast = 0
  #total = 0
  #uploading = 0

  /** @param onPermit called when a send becomes slow and another may start */
  constructor(onPermit: () => void) {
    this.#onPermit = onPermit
  }

  get canUpload(): boolean {
    return this.#uploading < MAX_UPLOADING_SENDS
  }

  /** Null if no permit is free. */
  acquire(message: QueuedMessage): Permit | null {
    if (this.#fast >= MAX_FAST_SENDS || this.#total >= MAX_SENDS) return null
    const uploads = needsUpload(message) ? 1 : 0
    this.#fast += 1
    this.#total += 1
    this.#uploading += uploads
    let timer: NodeJS.Timeout | undefined = setTimeout(() => {
      timer = undefined
      this.#fast -= 1
      this.#onPermit()
    }, SLOW_AFTER_MS)
    return {
      release: () => {
        this.#total -= 1
        this.#uploading -= uploads
        if (timer === undefined) return
        clearTimeout(timer)
        this.#fast -= 1
      },
    }
  }
}
