import { type ChildProcess, spawn } from 'node:child_process'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { type Picture, type StoredFile, showsPicture } from '../domain/media.ts'
import { BoundedMap } from '../kit/bounded-map.ts'
import { ownBytes } from '../kit/own-bytes.ts'
import { Turns } from '../kit/turns.ts'

/** Larger files have no thumbnail. No image may be larger, but a document may. */
const MAX_BYTES = 16 * 1_048_576
/** Processes at the same time. */
const AT_ONCE = 2
/** How long a picture waits for others: a message is not delayed much for a thumbnail, whatever other instances send. */
const MAX_WAIT_MS = 5_000
/** How long the picture may take to read after this wait. */
const MAX_MS = 25_000
const MAX_ANSWER_BYTES = 65_536
/** A file is often sent to many recipients. */
const MAX_KNOWN = 200
const MAX_HEAP_MB = 64
/** The process ended before it had read the whole file. */
const ENDED_EARLY: ReadonlySet<unknown> = new Set(['EPIPE', 'ECONNRESET', 'ERR_STREAM_PREMATURE_CLOSE'])

export interface PicturesOptions {
  /** Default: `picture-process.ts`. */
  program?: string
  maxMs?: number
  /** Called when a picture gets no thumbnail. */
  onFailed(mediaId: string, why: string): void
}

/**
 * Finds the size of pictures and makes their thumbnails, each in a process of its own: a hostile picture can crash the program that
 * decodes it, or fill its memory. No process runs while there is nothing to read.
 */
export class Pictures {
  readonly #onFailed
  readonly #program: string
  readonly #maxMs: number
  readonly #turns = new Turns(AT_ONCE)
  /** Results by medium. The content of a medium never changes. */
  readonly #known = new BoundedMap<string, Picture | null>(MAX_KNOWN)

  constructor({ program, maxMs = MAX_MS, onFailed }: PicturesOptions) {
    this.#program = program ?? fileURLToPath(new URL('./picture-process.ts', import.meta.url))
    this.#maxMs = maxMs
    this.#onFailed = onFailed
  }

  /** Null if the file is not a picture, or could not be read in time. Never rejects. */
  async read({ media: { id, mimetype, size }, open }: StoredFile, signal: AbortSignal): Promise<Picture | null> {
    if (!showsPicture(mimetype) || size > MAX_BYTES) return null
    const known = this.#known.get(id)
    if (known !== undefined) return known
    if (!(await this.#turns.take(within(signal, Math.min(MAX_WAIT_MS, this.#maxMs))))) {
      this.#onFailed(id, 'Other pictures took too long.')
      return null
    }
    try {
      // Another message may have contained the same file.
      const meanwhile = this.#known.get(id)
      const found = meanwhile === undefined ? await this.#run(open, within(signal, this.#maxMs)) : meanwhile
      this.#known.set(id, found)
      return found
    } catch (error) {
      // Another attempt would end in the same way, unless the file could not be read or the link has ended.
      if (error instanceof Unreadable && !signal.aborted) this.#known.set(id, null)
      this.#onFailed(id, error instanceof Error ? error.message : String(error))
      return null
    } finally {
      this.#turns.end()
    }
  }

  async #run(open: StoredFile['open'], signal: AbortSignal): Promise<Picture> {
    // Without the environment, which contains secrets.
    const child = spawn(process.execPath, [`--max-old-space-size=${MAX_HEAP_MB}`, this.#program], {
      env: {},
      stdio: ['pipe', 'pipe', 'ignore'],
      signal,
      killSignal: 'SIGKILL',
    })
    const answered = answerOf(child)
    answered.catch(() => undefined)
    try {
      // The process could not be started, and `stdin` may be missing.
      if (child.pid === undefined) return parse(await answered)
      // Opened only now, because nobody would close the file otherwise.
      await pipeline(await open(), child.stdin).catch(error => {
        if (!ENDED_EARLY.has(error.code)) throw error
      })
      return parse(await answered)
    } finally {
      child.kill('SIGKILL')
    }
  }
}

function within(signal: AbortSignal, ms: number): AbortSignal {
  return AbortSignal.any([signal, AbortSignal.timeout(ms)])
}

/** The process did not find a picture in the file, or died. */
class Unreadable extends Error {
  override readonly name = 'Unreadable'
}

/** Reads the output of the process. @throws Unreadable unless the process succeeds */
function answerOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    child.stdout?.setEncoding('utf8').on('data', (part: string) => {
      text += part
      if (text.length > MAX_ANSWER_BYTES) child.kill('SIGKILL')
    })
    child.once('error', error => reject(error.name === 'AbortError' ? new Unreadable('It took too long.') : error))
    child.once('close', (code, killedBy) => {
      if (code === 0) resolve(text)
      else reject(new Unreadable(`The process that reads the picture ended with ${killedBy ?? code}.`))
    })
  })
}

/** @throws Unreadable if it is not a picture */
function parse(text: string): Picture {
  try {
    const { width, height, isAnimated, thumbnail } = JSON.parse(text)
    if (width > 0 && height > 0 && typeof thumbnail === 'string')
      return { width, height, isAnimated: isAnimated === true, thumbnail: ownBytes(Buffer.from(thumbnail, 'base64')) }
  } catch {}
  throw new Unreadable('The process that reads the picture gave no answer.')
}
