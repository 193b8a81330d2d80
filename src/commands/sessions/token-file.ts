import { closeSync, fstatSync, fsyncSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs'
import { BadSettings } from '../../config.ts'

const PRIVATE_FILE = 0o600
const OTHERS = 0o077

interface TokenLine {
  instanceId: string
  name: string
  phone: string
  token: string
}

/** A file with the tokens of imported instances: one JSON object on each line. Only its owner can read it. */
export class TokenFile {
  readonly path: string
  readonly #file: number

  /** Lines are added to an existing file. @throws BadSettings if others may read it */
  constructor(path: string) {
    this.path = path
    this.#file = openSync(path, 'a', PRIVATE_FILE)
    // Windows shows the same mode for every file.
    if (process.platform !== 'win32' && (fstatSync(this.#file).mode & OTHERS) !== 0) {
      closeSync(this.#file)
      throw new BadSettings([`${path} can be read by others: run "chmod 600 ${path}", or name another file.`])
    }
  }

  /**
   * Returns once the line would survive a power failure. Call it before the commit of the instance: the token exists nowhere
   * else.
   */
  add(line: TokenLine): void {
    const bytes = Buffer.from(`${JSON.stringify(line)}\n`)
    const { size } = fstatSync(this.#file)
    try {
      // A write may store fewer bytes than it is given.
      for (let from = 0; from < bytes.length; ) from += writeSync(this.#file, bytes, from)
    } catch (error) {
      ftruncateSync(this.#file, size)
      throw error
    }
    fsyncSync(this.#file)
  }

  /** Whether the file has the token of this instance. */
  has(instanceId: string): boolean {
    return readFileSync(this.path, 'utf8').includes(`"instanceId":"${instanceId}"`)
  }

  close(): void {
    closeSync(this.#file)
  }
}
