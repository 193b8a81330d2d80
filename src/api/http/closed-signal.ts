/** @returns a signal that is aborted when the caller disconnects, and after the answer */
export function closedSignal(response: NodeJS.EventEmitter): AbortSignal {
  const closed = new AbortController()
  response.once('close', () => closed.abort())
  return closed.signal
}
