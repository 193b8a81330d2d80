import { Agent, type Dispatcher, Dispatcher1Wrapper } from 'undici'

/** The longest time without a byte. Node's own `fetch` waits for 5 min. */
const SILENCE_MS = 30_000

/** A dispatcher for Node's own `fetch`, which fails when the server sends nothing for a while. */
export function fetchDispatcher(connect?: Agent.Options['connect'], silenceMs = SILENCE_MS): Dispatcher {
  const limits = { headersTimeout: silenceMs, bodyTimeout: silenceMs }
  // Node's `fetch` contains an older undici.
  return new Dispatcher1Wrapper(new Agent({ ...limits, ...(connect && { connect }) }))
}
