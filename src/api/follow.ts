import type { EventStream } from './http/event-stream.ts'

export interface Source {
  /** Sends the present state if it changed. Calls never overlap. */
  update(): Promise<void>
  /** Calls `poll` on every hint. @returns a function that ends the subscription */
  onHint(poll: () => void): () => void
  /** The poll interval in milliseconds; it covers lost hints. */
  pollMs: number
  /** The stream ends after an error, and its reader reconnects. */
  onError(error: unknown): void
}

/** Keeps a stream up to date until it ends. A hint during an update causes one more update. */
export function follow(stream: EventStream, source: Source): void {
  let isUpdating = false
  let again = false

  async function poll(): Promise<void> {
    again = true
    if (isUpdating) return
    isUpdating = true
    try {
      while (again && !stream.ended) {
        again = false
        await source.update()
      }
    } catch (error) {
      source.onError(error)
      stream.end()
    } finally {
      isUpdating = false
    }
  }

  const stopHints = source.onHint(poll)
  const timer = setInterval(poll, source.pollMs)
  stream.onEnd(() => {
    stopHints()
    clearInterval(timer)
  })
  void poll()
}
