import { setTimeout as sleep } from 'node:timers/promises'

interface RepeatOptions {
  /** Default: immediately. */
  firstAfterMs?: number
  everyMs: number
  /** Called when a round failed, unless it failed because it was stopped. The next round comes at its time. */
  onFailed(error: unknown): void
}

export interface Repeated {
  /** Starts the next round now, or right after the current one. */
  wake(): void
  /** Resolves when the current round has ended. */
  stop(): Promise<void>
}

/** Repeats `round` until `stop` is called. The pauses do not keep the process alive. */
export function repeat(
  round: (stopping: AbortSignal) => Promise<unknown>,
  { firstAfterMs = 0, everyMs, onFailed }: RepeatOptions,
): Repeated {
  const stopping = new AbortController()
  const { signal } = stopping
  let woken = Promise.withResolvers<void>()

  async function rounds(): Promise<void> {
    for (let pauseMs = firstAfterMs; !signal.aborted; pauseMs = everyMs) {
      await Promise.race([sleep(pauseMs, undefined, { signal, ref: false }), woken.promise])
      woken = Promise.withResolvers()
      await round(signal).catch(error => {
        if (!signal.aborted) onFailed(error)
      })
    }
  }

  const ended = rounds().catch(() => undefined)
  return {
    wake: () => woken.resolve(),
    async stop() {
      stopping.abort()
      await ended
    },
  }
}
