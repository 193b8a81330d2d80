import { BroadcastChannel, isMainThread } from 'node:worker_threads'

/** Loaded into a process before its program (`--import`, with `--expose-gc`). All its threads collect garbage on SIGUSR2. */
const collections = new BroadcastChannel('gc')
collections.onmessage = () => globalThis.gc?.()
collections.unref()
if (isMainThread) {
  process.on('SIGUSR2', () => {
    collections.postMessage(null)
    globalThis.gc?.()
  })
}
