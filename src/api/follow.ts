import type { EventStream } from './http/event-stream.ts'

export interface Source {
  /** Tells the stream what is the case now, if it changed. Never runs twice at a time. */
  tell(): Promise<void>
  /** Calls `look` whenever there is a reason to; returns what ends it. */
  onHint(look: () => void): () => void
  /** How often to look without a reason: a hint may be lost. */
  pollMs: number
  /** The stream ends after it: its reader comes back. */
  onError(error: unknown): void
}

/** Keeps a stream told until it ends. Hints that come while it looks make it look once more. */
export function follow(stream: EventStream, source: Source): void {
  let looking = false
  let again = false

  async function look(): Promise<void> {
    again = true
    if (looking) return
    looking = true
    try {
      while (again && !stream.ended) {
        again = false
        await source.tell()
      }
    } catch (error) {
      source.onError(error)
      stream.end()
    } finally {
      looking = false
    }
  }

  const stopHints = source.onHint(look)
  const poll = setInterval(look, source.pollMs)
  stream.onEnd(() => {
    stopHints()
    clearInterval(poll)
  })
  void look()
}
