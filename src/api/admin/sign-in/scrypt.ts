import { Worker } from 'node:worker_threads'
import { unavailable } from '../../http/error-handler.ts'

export interface Derivation {
  password: string
  salt: Uint8Array
  keyBytes: number
  cost: { N: number; r: number; p: number; maxmem: number }
}

/** Derivations that wait for the one before. Together they take some seconds. */
const MAX_WAITING = 32

/**
 * Derives one key at a time, in a thread of its own: scrypt in libuv's pool would hold up the commits, whose disk
 * writes run there too, and many at once would take 32 MiB each.
 */
export class Derivations {
  #waiting = 0
  #last: Promise<unknown> = Promise.resolve()

  /** @throws Refusal `service_unavailable` when too many wait */
  async derive(derivation: Derivation): Promise<Uint8Array> {
    if (this.#waiting >= MAX_WAITING) throw unavailable()
    this.#waiting += 1
    const derived = this.#last
      .then(() => deriveInThread(derivation))
      .finally(() => {
        this.#waiting -= 1
      })
    this.#last = derived.catch(() => undefined)
    return derived
  }
}

/** A thread for each: it starts within a fraction of what scrypt takes, and nothing is left of it. */
function deriveInThread(workerData: Derivation): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    new Worker(new URL('./scrypt-thread.ts', import.meta.url), { workerData, execArgv: [], stdin: false })
      .once('message', resolve)
      .once('error', reject)
      .once('exit', () => reject(new Error('The thread ended without a key.')))
      .unref()
  })
}
