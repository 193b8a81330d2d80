import { existsSync, readFileSync, renameSync } from 'node:fs'
import { isMainThread, threadId, threadName } from 'node:worker_threads'

/**
 * Loaded into a node with `--import`. When the file `THREAD_FAULT` appears, one WhatsApp thread takes it and fails in the way
 * that its content names: `error`, `loop` or `memory`.
 */
const file = process.env['THREAD_FAULT']
const LOOK_EVERY_MS = 20
const LOOP_EVERY_MS = 10

function fail(how: string): void {
  if (how === 'error') throw new Error('A fault of the test.')
  const kept: unknown[] = []
  const nothing = new Int32Array(new SharedArrayBuffer(4))
  for (;;) {
    if (how === 'memory') kept.push(Array.from({ length: 10_000 }, (_, n) => ({ n })))
    // Leaves the processor to the other tests. To the main thread it is an endless loop like any other.
    else Atomics.wait(nothing, 0, 0, LOOP_EVERY_MS)
  }
}

if (!isMainThread && threadName === 'whatsapp' && file) {
  setInterval(() => {
    if (!existsSync(file)) return
    const taken = `${file}-${threadId}`
    try {
      renameSync(file, taken)
    } catch {
      // Another thread has taken it.
      return
    }
    fail(readFileSync(taken, 'utf8'))
  }, LOOK_EVERY_MS).unref()
}
