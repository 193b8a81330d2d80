import type { Api } from '../context.ts'

const SWEEP_MS = 50
/** How long open requests may take to finish before their connections are closed. */
const DRAIN_MS = 4_000

/**
 * Closes the server without waiting for keep-alive connections: idle ones are closed at once, the rest after `DRAIN_MS`.
 * (`server.close()` closes only the connections that are idle when it is called.) Answers carry `Connection: close` as
 * soon as the node drains, so that callers do not send another request.
 * @returns a signal that is aborted when the closing begins
 */
export function drainOnClose(api: Api, node: { readonly isDraining: boolean }): AbortSignal {
  const closing = new AbortController()
  let sweep: NodeJS.Timeout | undefined
  let deadline: NodeJS.Timeout | undefined
  api.addHook('preClose', async () => {
    closing.abort()
    sweep = setInterval(() => api.server.closeIdleConnections(), SWEEP_MS)
    deadline = setTimeout(() => api.server.closeAllConnections(), DRAIN_MS)
  })
  api.addHook('onSend', (request, reply, _payload, done) => {
    if (!closing.signal.aborted && !node.isDraining) return done()
    // Later, when a body that came with the headers has been read. Closing in the middle of a body could lose the answer.
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
