import { Worker } from 'node:worker_threads'
import type { Session, StoredValue } from '../baileys/transfer/session.ts'

/** A session of 8 MiB takes about half of it. */
const MAX_HEAP_MB = 512

let last: Promise<unknown> = Promise.resolve()

/**
 * Reads one session at a time in a thread of its own: the checks of many keys take seconds, and nothing else may wait for them.
 * @returns the session, or the sentence that says why it cannot be used
 */
export function readInThread(values: readonly StoredValue[]): Promise<Session | string> {
  const read = last.then(() => startThread(values))
  last = read.catch(() => undefined)
  return read
}

function startThread(workerData: readonly StoredValue[]): Promise<Session | string> {
  return new Promise((resolve, reject) => {
    const resourceLimits = { maxOldGenerationSizeMb: MAX_HEAP_MB }
    new Worker(new URL('./read-session-thread.ts', import.meta.url), {
      workerData,
      resourceLimits,
      execArgv: [],
      stdin: false,
    })
      .once('message', resolve)
      .once('error', (error: NodeJS.ErrnoException) => {
        if (error.code === 'ERR_WORKER_OUT_OF_MEMORY') resolve('It is too large to be read.')
        else reject(error)
      })
      .once('exit', () => reject(new Error('The thread ended without a session.')))
      .unref()
  })
}
