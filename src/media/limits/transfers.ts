import type { InstanceId } from '../../domain/ids.ts'
import { Refusal } from '../../domain/refusal.ts'
import { BoundedMap } from '../../kit/bounded-map.ts'

/** `preview`: a download by the panel. */
export type Direction = 'upload' | 'download' | 'preview'

/**
 * The most transfers of one instance, and of all instances of a node. The second half of the node's places is for
 * instances without a transfer, so that a few slow instances do not hold all places.
 */
const AT_ONCE: Readonly<Record<Direction, { instance: number; node: number }>> = {
  upload: { instance: 2, node: 32 },
  download: { instance: 4, node: 64 },
  // A browser loads six files of a page at once.
  preview: { instance: 12, node: 48 },
}
const WINDOW_MS = 60_000
const SECOND_MS = 1_000
/** Beyond this number, the windows that began longest ago are forgotten. */
const MAX_WINDOWS = 10_000

/** A transfer that is under way. It counts until it is disposed. */
export interface Transfer extends Disposable {
  count(bytes: number): void
}

/** Limits how many files are transferred at once, and how many bytes an instance transfers in a window of 60 s. */
export class Transfers {
  readonly #bytesPerMinute: number
  readonly #now: () => number
  readonly #ofNode: Record<Direction, number> = { upload: 0, download: 0, preview: 0 }
  readonly #ofInstance = new Map<string, number>()
  readonly #windows = new BoundedMap<string, { since: number; bytes: number }>(MAX_WINDOWS)

  constructor(bytesPerMinute: number, now = () => performance.now()) {
    this.#bytesPerMinute = bytesPerMinute
    this.#now = now
  }

  /**
   * @param bytes the number that is known in advance. The first file of a window is accepted, however large
   * @throws Refusal `too_many_transfers`
   */
  begin(direction: Direction, instanceId: InstanceId, bytes: number): Transfer {
    const key = `${direction} ${instanceId}`
    const { instance, node } = AT_ONCE[direction]
    const open = this.#ofInstance.get(key) ?? 0
    if (open >= instance) throw busy(`The instance already has ${instance} ${direction}s in progress.`, 1)
    if (this.#ofNode[direction] >= (open > 0 ? node / 2 : node))
      throw busy(`There are too many ${direction}s right now.`, 1)
    const callers = direction === 'preview' ? `panel ${instanceId}` : instanceId
    const window = this.#windowOf(callers)
    if (window.bytes > 0 && window.bytes + bytes > this.#bytesPerMinute) {
      const restMs = window.since + WINDOW_MS - this.#now()
      throw busy('The instance has transferred too much within a minute.', Math.max(1, Math.ceil(restMs / SECOND_MS)))
    }
    this.#ofInstance.set(key, open + 1)
    this.#ofNode[direction] += 1
    return {
      count: more => {
        this.#windowOf(callers).bytes += more
      },
      [Symbol.dispose]: () => this.#end(direction, key),
    }
  }

  #end(direction: Direction, key: string): void {
    const open = this.#ofInstance.get(key) ?? 0
    if (open > 1) this.#ofInstance.set(key, open - 1)
    else this.#ofInstance.delete(key)
    this.#ofNode[direction] -= 1
  }

  /** @param callers the instance, for its own programs, or the panel as a reader of the instance */
  #windowOf(callers: string) {
    const now = this.#now()
    const known = this.#windows.get(callers)
    if (known !== undefined && now - known.since < WINDOW_MS) return known
    const window = { since: now, bytes: 0 }
    this.#windows.set(callers, window)
    return window
  }
}

function busy(message: string, retryAfterSeconds: number): Refusal {
  return new Refusal('too_many_transfers', `${message} Wait for the Retry-After time.`, { retryAfterSeconds })
}
