import { writeSync } from 'node:fs'

/** Kept for a reader that is slow. */
const MAX_KEPT_BYTES = 4 * 1024 * 1024
const TRY_AGAIN_MS = 20
/** How long the end of the process waits for such a reader. */
const LAST_TRY_MS = 1_000
const WARN_LEVEL = 40
const NEWLINE = 10

/**
 * Where the log goes, which may refuse it or not take it: a full disk, a pipe whose reader is gone or does not read. None
 * of these ends the process or makes it wait. Lines wait for a slow reader, up to `MAX_KEPT_BYTES`; the others are dropped
 * and counted, and the next line that can be written says how many (`log.lines_dropped`).
 *
 * The descriptor of a pipe or a socket must not block; Node sees to that as soon as `process.stdout` is used.
 */
export class LogFile {
  readonly #fd: number
  /** Not written yet, the oldest first; of the first one perhaps only the rest. */
  #kept: Buffer[] = []
  #keptBytes = 0
  #dropped = 0
  #lastByte = NEWLINE
  #timer: NodeJS.Timeout | undefined

  constructor(fd: number) {
    this.#fd = fd
  }

  /** @param lines each with its newline */
  write(lines: readonly string[]): void {
    if (this.#keptBytes > MAX_KEPT_BYTES) {
      this.#dropped += lines.length
      return
    }
    if (this.#dropped > 0) this.#keep(lineAboutDropped(this.#dropped))
    this.#dropped = 0
    this.#keep(lines.join(''))
    // While the reader is slow the timer alone tries again.
    if (this.#timer === undefined) this.#writeKept()
  }

  /** Writes what is kept, and waits a moment for a slow reader. */
  end(): void {
    const clock = new Int32Array(new SharedArrayBuffer(4))
    for (let waitedMs = 0; ; waitedMs += TRY_AGAIN_MS) {
      clearTimeout(this.#timer)
      this.#writeKept()
      if (this.#keptBytes === 0 || waitedMs >= LAST_TRY_MS) return
      Atomics.wait(clock, 0, 0, TRY_AGAIN_MS)
    }
  }

  #keep(text: string): void {
    const bytes = Buffer.from(text)
    this.#kept.push(bytes)
    this.#keptBytes += bytes.length
  }

  #writeKept(): void {
    this.#timer = undefined
    try {
      for (let first = this.#kept[0]; first !== undefined; first = this.#kept[0]) this.#writeSome(first)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EAGAIN') {
        this.#timer = setTimeout(() => this.#writeKept(), TRY_AGAIN_MS).unref()
      } else this.#dropKept()
    }
  }

  #writeSome(first: Buffer): void {
    const written = writeSync(this.#fd, first)
    this.#keptBytes -= written
    this.#lastByte = first[written - 1] ?? this.#lastByte
    if (written < first.length) this.#kept[0] = first.subarray(written)
    else this.#kept.shift()
  }

  #dropKept(): void {
    for (const bytes of this.#kept) this.#dropped += countLines(bytes)
    // What comes next begins a line of its own.
    this.#kept = this.#lastByte === NEWLINE ? [] : [Buffer.of(NEWLINE)]
    this.#keptBytes = this.#kept.length
  }
}

function lineAboutDropped(lines: number): string {
  return `${JSON.stringify({ level: WARN_LEVEL, time: Date.now(), msg: 'log.lines_dropped', lines })}\n`
}

function countLines(bytes: Buffer): number {
  let count = 0
  for (let at = bytes.indexOf(NEWLINE); at !== -1; at = bytes.indexOf(NEWLINE, at + 1)) count += 1
  return count
}
