import { readSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import Sqlite from 'better-sqlite3'

/** `passive` waits for nobody and writes back what it can. `truncate` also empties the log. `rewrite`: see `rewriteLog`. */
export type CheckpointMode = 'passive' | 'truncate' | 'rewrite'
/** `frames`: the pages in the log; or an error of SQLite. */
export type CheckpointResult = { isBusy: boolean; frames: number } | { message: string; code: string }

// SQLite, "WAL-mode File Format": the header of the log, the header of each frame, and the salt in each. A frame belongs to the
// present log only if it has the header's salt. The others are left over from before the log started again.
const HEADER_BYTES = 32
const HEADER_SALT_AT = 16
const FRAME_HEADER_BYTES = 24
const FRAME_SALT_AT = 8
const SALT_BYTES = 8

/** The thread needs little memory: SQLite copies one page after another. */
const RESOURCE_LIMITS = { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 1, stackSizeMb: 1 }

export interface ThreadData {
  path: string
  /** The descriptor of the log. */
  log: number
  /** The descriptor of its index. */
  index: number
}

interface LogCheckpointsOptions extends ThreadData {
  pageBytes: number
  /** A log of this size is written back. */
  logBytes: number
}

/**
 * Writes the log back into the database, in a thread with a connection of its own. A checkpoint of a full log takes up to
 * 250 ms, which would delay every caller.
 *
 * Commits continue during the first pass, so the log grows. The second pass writes back the little that was added,
 * while the next write waits. SQLite then starts the log again from its beginning. If the log has doubled before the
 * first pass ends, writes wait for this pass too. So the log is at most twice its usual size, unless another process
 * reads an old state.
 */
export class LogCheckpoints {
  readonly #options: LogCheckpointsOptions
  /** The number of frames at which the log is written back. */
  readonly #usualFrames: number
  readonly #salt = Buffer.alloc(SALT_BYTES)
  readonly #frameSalt = Buffer.alloc(SALT_BYTES)
  /**
   * The salt of the last log that could not start again, and the number of frames at which the next checkpoint is
   * tried.
   */
  #stuck: { salt: Buffer; frames: number } | null = null
  #worker: Worker | null = null
  readonly #waiting: PromiseWithResolvers<{ isBusy: boolean; frames: number }>[] = []
  #firstPass: Promise<void> | null = null
  #needsSecondPass = false

  constructor(options: LogCheckpointsOptions) {
    this.#options = options
    this.#usualFrames = Math.ceil(options.logBytes / (options.pageBytes + FRAME_HEADER_BYTES))
  }

  /** Call before each write, never after a commit: an error here must not make a write seem failed that is on disk. */
  async beforeWrite(): Promise<void> {
    const mayStart = this.#firstPass === null && !this.#needsSecondPass
    if (mayStart && this.#reaches(this.#frames)) this.#firstPass = this.#runFirstPass()
    if (this.#firstPass !== null && this.#reaches(this.#frames + this.#usualFrames)) await this.#firstPass
    if (!this.#needsSecondPass) return
    this.#needsSecondPass = false
    const result = await this.#run('passive').catch(() => null)
    // If the log does not start again, another process reads an old state.
    this.#tryLater(result?.frames ?? this.#frames)
  }

  async #runFirstPass(): Promise<void> {
    try {
      await this.#run('passive')
      this.#needsSecondPass = true
    } catch {
      this.#tryLater(this.#frames)
    } finally {
      this.#firstPass = null
    }
  }

  /** Removes former versions of pages from the log. @throws SqliteError SQLITE_BUSY while others read or write */
  async truncate(): Promise<void> {
    const { isBusy } = await this.#run('truncate')
    if (isBusy) throw new Sqlite.SqliteError('The write-ahead log is in use.', 'SQLITE_BUSY')
  }

  /** Writes every byte of the log again, so that the next sync covers all of it. No commit may run at the same time. */
  async rewrite(): Promise<void> {
    await this.#run('rewrite')
  }

  async close(): Promise<void> {
    await this.#worker?.terminate()
  }

  get #frames(): number {
    return this.#stuck?.salt.equals(this.#readSalt()) ? this.#stuck.frames : this.#usualFrames
  }

  #tryLater(frames: number): void {
    this.#stuck = { salt: Buffer.from(this.#readSalt()), frames: frames + this.#usualFrames }
  }

  #readSalt(): Buffer {
    readSync(this.#options.log, this.#salt, 0, SALT_BYTES, HEADER_SALT_AT)
    return this.#salt
  }

  /** Whether the log contains this many frames. */
  #reaches(frames: number): boolean {
    const { log, pageBytes } = this.#options
    const at = HEADER_BYTES + (frames - 1) * (FRAME_HEADER_BYTES + pageBytes) + FRAME_SALT_AT
    const length = readSync(log, this.#frameSalt, 0, SALT_BYTES, at)
    return length === SALT_BYTES && this.#frameSalt.equals(this.#readSalt())
  }

  /** Rejects if the thread cannot start, as at a limit of threads, or if it ends. */
  async #run(mode: CheckpointMode): Promise<{ isBusy: boolean; frames: number }> {
    this.#worker ??= this.#start()
    const result = Promise.withResolvers<{ isBusy: boolean; frames: number }>()
    this.#waiting.push(result)
    this.#worker.ref()
    this.#worker.postMessage(mode)
    return result.promise
  }

  #start(): Worker {
    const { path, log, index } = this.#options
    const worker = new Worker(new URL('./checkpoint-thread.ts', import.meta.url), {
      workerData: { path, log, index } satisfies ThreadData,
      name: 'checkpoint',
      execArgv: [],
      resourceLimits: RESOURCE_LIMITS,
    })
    worker.on('message', (result: CheckpointResult) => {
      const { resolve, reject } = this.#waiting.shift()!
      if (this.#waiting.length === 0) worker.unref()
      if ('frames' in result) resolve(result)
      else reject(new Sqlite.SqliteError(result.message, result.code))
    })
    // The next checkpoint starts another thread. SQLite itself writes a much larger log back in the main thread.
    let cause: unknown
    worker.on('error', error => {
      cause = error
    })
    worker.once('exit', () => {
      this.#worker = null
      for (const { reject } of this.#waiting.splice(0)) reject(new Error('The checkpoint thread ended.', { cause }))
    })
    return worker
  }
}
