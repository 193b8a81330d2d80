import type { Api } from '../context.ts'

const SWEEP_MS = 50
/** How long what is in flight may take to finish; a request that is still arriving then is cut off. */
const DRAIN_MS = 4_000

/**
 * Closes the server without waiting for callers that keep their connections: whatever becomes idle is closed at once,
 * and after `DRAIN_MS` the rest. (`server.close()` alone closes only what is idle when it is called.) What is answered
 * meanwhile says so, or the caller's next request would be cut off; so does what is answered before, from the moment that
 * `isDraining`.
 * @returns aborted when the closing begins
 */
export function drainOnClose(api: Api, isDraining: () => boolean): AbortSignal {
  const closing = new AbortController()
  let sweep: NodeJS.Timeout | undefined
  let deadline: NodeJS.Timeout | undefined
  api.addHook('preClose', async () => {
    closing.abort()
    sweep = setInterval(() => api.server.closeIdleConnections(), SWEEP_MS)
    deadline = setTimeout(() => api.server.closeAllConnections(), DRAIN_MS)
  })
  api.addHook('onSend', (request, reply, _payload, done) => {
    if (!closing.signal.aborted && !isDraining()) return done()
    // By then a body that came with the headers has been read; closing a connection in the middle of one could drop the answer.
    setImmediate(() => {
      if (request.raw.complete) reply.header('connection', 'close')
      done()
    })
  })
  api.addHook('onClose', async () => {
    clearInterval(sweep)
    clearTimeout(deadline)
  })
  return closing.signal
}
