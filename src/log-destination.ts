import { writeSync } from 'node:fs'
import type { DestinationStream } from 'pino'

/** Lines are written at the end of the turn of the event loop, or earlier once this many characters are buffered. */
const MAX_BUFFERED_CHARACTERS = 65_536
const MAX_BUFFERED_BYTES = 4 * 1024 * 1024
const RETRY_MS = 20
/** How long the end of the process waits for a slow reader. */
const END_TIMEOUT_MS = 1_000
const WARN_LEVEL = 40
const NEWLINE = 10

/**
 * Writes the log lines of one turn of the event loop together, because one write per line takes a tenth of a busy service's
 * time. When the process exits, even by an uncaught error, the remaining lines are written. A `kill -9` loses the
 * lines of one turn. `LogFile` handles lines that cannot be written.
 * @param format how a line is written; by default as it is, in JSON
 */
export function logDestination(
  stream: NodeJS.WriteStream & { fd: number },
  format?: (line: string) => string,
): DestinationStream {
  const file = new LogFile(stream.fd)
  let lines: string[] = []
  let characters = 0
  const flush = () => {
    if (lines.length > 0) file.write(lines)
    lines = []
    characters = 0
  }
  process.on('exit', () => {
    flush()
    file.end()
  })
  return {
    write(json) {
      const line = format ? format(json) : json
      if (lines.length === 0) setImmediate(flush)
      lines.push(line)
      characters += line.length
      if (characters > MAX_BUFFERED_CHARACTERS) flush()
    },
  }
}

/**
 * Writes the log without ending or blocking the process when the disk is full, or a pipe's reader is gone or slow. Lines for a
 * slow reader are buffered up to `MAX_BUFFERED_BYTES`. Further lines are dropped, and a line `log.lines_dropped` with
 * their number follows as soon as it can be written.
 *
 * The descriptor of a pipe or socket must be non-blocking. Node makes it so when `process.stdout` is first used.
 */
export class LogFile {
  readonly #fd: number
  /** Unwritten bytes, the oldest first. */
  #buffered: Buffer[] = []
  #bufferedBytes = 0
  #dropped = 0
  #lastByte = NEWLINE
  #timer: NodeJS.Timeout | undefined

  constructor(fd: number) {
    this.#fd = fd
  }

  /** @param lines each ends with a newline */
  write(lines: readonly string[]): void {
    if (this.#bufferedBytes > MAX_BUFFERED_BYTES) {
      this.#dropped += lines.length
      return
    }
    const aboutDropped = this.#dropped > 0 ? lineAboutDropped(this.#dropped) : ''
    this.#dropped = 0
    const bytes = Buffer.from(aboutDropped + lines.join(''))
    this.#buffered.push(bytes)
    this.#bufferedBytes += bytes.length
    // While the reader is slow, only the timer writes.
    if (this.#timer === undefined) this.#writeBuffered()
  }

  /** Writes the buffer, and waits up to 1 s for a slow reader. Blocks the process. */
  end(): void {
    const clock = new Int32Array(new SharedArrayBuffer(4))
    for (let waitedMs = 0; ; waitedMs += RETRY_MS) {
      clearTimeout(this.#timer)
      this.#writeBuffered()
      if (this.#bufferedBytes === 0 || waitedMs >= END_TIMEOUT_MS) return
      Atomics.wait(clock, 0, 0, RETRY_MS)
    }
  }

  #writeBuffered(): void {
    this.#timer = undefined
    try {
      for (let first = this.#buffered[0]; first !== undefined; first = this.#buffered[0]) {
        const written = writeSync(this.#fd, first)
        this.#bufferedBytes -= written
        this.#lastByte = first[written - 1] ?? this.#lastByte
        if (written < first.length) this.#buffered[0] = first.subarray(written)
        else this.#buffered.shift()
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EAGAIN') {
        this.#timer = setTimeout(() => this.#writeBuffered(), RETRY_MS).unref()
      } else this.#dropBuffered()
    }
  }

  #dropBuffered(): void {
    for (const bytes of this.#buffered) this.#dropped += countLines(bytes)
    // The next line must not continue a partly written one.
    this.#buffered = this.#lastByte === NEWLINE ? [] : [Buffer.of(NEWLINE)]
    this.#bufferedBytes = this.#buffered.length
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
