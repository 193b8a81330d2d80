import { signatureHeaders, signingKeys } from '../../webhooks/posting/signature.ts'
import type { FeedItem } from './feed-client.ts'

/** The default of webhooks. */
const TIMEOUT_MS = 10_000
/** The pauses before each repeated attempt after an answer other than 2xx. After the last attempt, the next event follows. */
const RETRY_DELAYS_MS = [1_000, 5_000]
/** The pauses while the program cannot be reached; the last one repeats. */
const AWAY_DELAYS_MS = [500, 1_000, 2_000, 5_000]

interface ForwarderOptions {
  target: URL
  findSecret(): Promise<string>
  version: string
  say(line: string): void
  /** Rejects when the listener is stopped. */
  pause(ms: number): Promise<void>
  signal: AbortSignal
}

/** Posts events to a program on this machine, one after the other, signed as webhooks are. */
export class Forwarder {
  readonly #options: ForwarderOptions

  constructor(options: ForwarderOptions) {
    this.#options = options
  }

  /** Resolves when the program accepted the event or every attempt failed. Waits while the program is unreachable. */
  async forward({ id, body }: FeedItem): Promise<void> {
    const { target, say, pause } = this.#options
    let refusals = 0
    for (let away = 0; ; ) {
      const startedAt = performance.now()
      const answer = await this.#post(id, body, refusals + 1)
      const took = `${Math.round(performance.now() - startedAt)} ms`
      if (answer.kind === 'unreachable') {
        if (away === 0)
          say(`${body.event} ${id} → ${target.href} cannot be reached (${answer.code}). Start your program.`)
        await pause(AWAY_DELAYS_MS[Math.min(away, AWAY_DELAYS_MS.length - 1)]!)
        away += 1
        continue
      }
      const what =
        answer.kind === 'timeout' ? `no answer within ${TIMEOUT_MS / 1_000} s` : `${answer.status} in ${took}`
      if (answer.kind === 'answered' && answer.status >= 200 && answer.status < 300) {
        say(`${body.event} ${id} → ${what}`)
        return
      }
      const delayMs = RETRY_DELAYS_MS[refusals]
      refusals += 1
      if (delayMs === undefined) {
        say(`${body.event} ${id} → ${what}: given up. Only 2xx is success. Start with --after to get it again.`)
        return
      }
      say(`${body.event} ${id} → ${what}: trying again in ${delayMs / 1_000} s. Only 2xx is success.`)
      await pause(delayMs)
    }
  }

  async #post(eventId: string, body: FeedItem['body'], attemptNumber: number) {
    const { target, findSecret, version, signal } = this.#options
    const bytes = Buffer.from(JSON.stringify(body))
    const keys = signingKeys({ current: await findSecret(), previous: [] })
    const kind = body.event as Parameters<typeof signatureHeaders>[0]['kind']
    const headers = signatureHeaders({ body: bytes, keys, eventId, kind, attemptNumber, now: Date.now(), version })
    const timeout = AbortSignal.timeout(TIMEOUT_MS)
    try {
      const options = { method: 'POST', headers, body: bytes, redirect: 'manual' } as const
      const response = await fetch(target, { ...options, signal: AbortSignal.any([signal, timeout]) })
      await response.body?.cancel()
      return { kind: 'answered', status: response.status } as const
    } catch (error) {
      signal.throwIfAborted()
      if (timeout.aborted) return { kind: 'timeout' } as const
      const { code = 'no connection' } = ((error as Error).cause ?? {}) as { code?: string }
      return { kind: 'unreachable', code } as const
    }
  }
}
