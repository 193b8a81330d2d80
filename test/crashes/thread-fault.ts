import { existsSync, readFileSync, rmSync } from 'node:fs'
import { isMainThread, threadName } from 'node:worker_threads'

/**
 * Loaded into a node with `--import`. When the file `THREAD_FAULT` appears, one WhatsApp thread takes it and fails in the way
 * that its content names: `error`, `loop` or `memory`.
 */
const file = process.env['THREAD_FAULT']
const LOOK_EVERY_MS = 20

function fail(how: string): void {
  if (how === 'error') throw new Error('A fault of the test.')
  const kept: unknown[] = []
  for (;;) if (how === 'memory') kept.push(Array.from({ length: 10_000 }, (_, n) => ({ n })))
}

if (!isMainThread && threadName === 'whatsapp' && file) {
  setInterval(() => {
    if (!existsSync(file)) return
    const how = readFileSync(file, 'utf8')
    if (how === '') return
    rmSync(file, { force: true })
    fail(how)
  }, LOOK_EVERY_MS).unref()
}
