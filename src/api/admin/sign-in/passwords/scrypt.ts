import { Worker } from 'node:worker_threads'
import { unavailable } from '../../../http/error-handler.ts'

export interface Derivation {
  password: string
  salt: Uint8Array
  keyBytes: number
  cost: { N: number; r: number; p: number; maxmem: number }
}

/** Waiting derivations. Together they take a few seconds. */
const MAX_WAITING = 32

/**
 * Derives one key at a time in a separate thread. In libuv's pool scrypt would delay the disk writes of commits, and each
 * concurrent derivation would take 32 MiB.
 */
export class Derivations {
  readonly #callers = new Set<string>()
  #waiting = 0
  #last: Promise<unknown> = Promise.resolve()

  /**
   * @param caller may have one derivation waiting or running. Default: no such limit
   * @throws Refusal `service_unavailable` when too many are waiting, or one of the caller's is already waiting or running
   */
  async derive(derivation: Derivation, caller?: string): Promise<Uint8Array> {
    if (this.#waiting >= MAX_WAITING || (caller !== undefined && this.#callers.has(caller))) throw unavailable()
    this.#waiting += 1
    if (caller !== undefined) this.#callers.add(caller)
    const derived = this.#last
      .then(() => deriveInThread(derivation))
      .finally(() => {
        this.#waiting -= 1
        if (caller !== undefined) this.#callers.delete(caller)
      })
    this.#last = derived.catch(() => undefined)
    return derived
  }
}

/** Uses a new thread each time: its start is short compared to scrypt, and it leaves no memory behind. */
function deriveInThread(workerData: Derivation): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    new Worker(new URL('./scrypt-thread.ts', import.meta.url), { workerData, execArgv: [], stdin: false })
      .once('message', resolve)
      .once('error', reject)
      .once('exit', () => reject(new Error('The thread ended without a key.')))
      .unref()
  })
}
