import type { InstanceId } from '../../../domain/ids.ts'
import { Refusal } from '../../../domain/refusal.ts'
import { unavailable } from '../../http/error-handler.ts'

const MAX_PER_INSTANCE = 5
/** Half of the requests that callers with a key may have open on a node, so other calls are always possible. */
const MAX_PER_NODE = 1_000
const RETRY_AFTER_SECONDS = 5

interface Response {
  readonly closed: boolean
  once(event: 'close', listener: () => void): unknown
}

/** Limits the open streams and polls of this node. */
export class FeedReaders {
  readonly #open = new Map<InstanceId, number>()
  #total = 0

  /** @param response counts until it is closed @throws Refusal beyond a limit, and if `response` is already closed */
  admit(instanceId: InstanceId, response: Response): void {
    // The caller has disconnected, and a listener for `close` would never be called.
    if (response.closed) throw unavailable()
    const count = this.#open.get(instanceId) ?? 0
    if (count >= MAX_PER_INSTANCE)
      throw new Refusal('too_many_readers', undefined, { retryAfterSeconds: RETRY_AFTER_SECONDS })
    if (this.#total >= MAX_PER_NODE) throw unavailable()
    this.#open.set(instanceId, count + 1)
    this.#total += 1
    response.once('close', () => {
      const left = this.#open.get(instanceId)! - 1
      if (left === 0) this.#open.delete(instanceId)
      else this.#open.set(instanceId, left)
      this.#total -= 1
    })
  }
}
