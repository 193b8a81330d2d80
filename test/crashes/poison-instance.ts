import { existsSync, readFileSync } from 'node:fs'
import { isMainThread, Worker } from 'node:worker_threads'

/**
 * Loaded into a node with `--import`. While the file `POISON` names an instance, every thread that connects it dies half
 * a second later.
 */
const file = process.env['POISON']
const DIES_AFTER_MS = 500

interface Start {
  kind: string
  lease?: { instanceId: string }
  network?: { kind: string }
}

if (isMainThread && file) {
  const { postMessage } = Worker.prototype
  Worker.prototype.postMessage = function (this: Worker, messages: unknown, ...rest: never[]) {
    postMessage.call(this, messages, ...rest)
    if (!Array.isArray(messages) || !existsSync(file)) return
    const poison = readFileSync(file, 'utf8')
    const starts = (messages as Start[]).some(({ kind, lease, network }) => {
      return kind === 'start' && lease?.instanceId === poison && network?.kind !== 'none'
    })
    // The first message after the start shows that the thread has loaded.
    if (starts) this.once('message', () => setTimeout(() => this.terminate(), DIES_AFTER_MS))
  }
}
