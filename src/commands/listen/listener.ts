import { setTimeout as sleep } from 'node:timers/promises'
import { CallFailed, FeedClient } from './feed-client.ts'
import { Forwarder } from './forwarder.ts'

/** The pauses before another connection to the service; the last one repeats. */
const RECONNECT_MS = [500, 1_000, 2_000, 5_000]
/** How long a secret is used before it is read again. */
const SECRET_MS = 60_000

/** The listener cannot continue. The message says what to do. */
export class ListenerStopped extends Error {
  override readonly name = 'ListenerStopped'
}

const CURSOR_EXPIRED = 410

/** The remedy for an error that a repeated call would get again. */
const REMEDIES: Readonly<Record<number, string>> = {
  400: 'The service refused the call. Check --after and --event.',
  401: 'The token is unknown or was replaced. Set POMBAL_TOKEN to the current one.',
  403: 'The API key needs the scopes "events" and "webhooks". Use the token of the instance, or a key with both.',
  404: 'There is no feed at this address. Check --server, and that the service is up to date.',
  [CURSOR_EXPIRED]:
    'Events after the last cursor were erased. Start with --after latest, or with --after oldest to get all that are kept.',
}

interface ListenerOptions {
  server: URL
  token: string
  target: URL
  /** A cursor, `latest` or `oldest`. */
  after: string
  event: string | undefined
  version: string
  say(line: string): void
  signal: AbortSignal
}

/** Forwards the events of one instance until it is stopped. The cursor moves on only when `forward` has resolved. */
export class Listener {
  readonly #options: ListenerOptions
  readonly #client: FeedClient
  readonly #forwarder: Forwarder
  #instanceId = ''
  #secret: { value: string; readAt: number } | null = null
  #cursor: string
  #failures = 0
  /** The line to print when the first stream has opened. Null after that. */
  #welcome: string | null = null

  constructor(options: ListenerOptions) {
    this.#options = options
    this.#cursor = options.after === 'oldest' ? '' : options.after
    this.#client = new FeedClient(options.server, options.token, options.signal)
    this.#forwarder = new Forwarder({
      ...options,
      findSecret: () => this.#findSecret(),
      pause: ms => this.#pause(ms),
    })
  }

  /** Where the next start continues. Empty if the service refuses the last cursor. */
  get cursor(): string {
    return this.#cursor
  }

  /** @throws ListenerStopped */
  async run(): Promise<void> {
    const { say, signal, server, target } = this.#options
    while (!signal.aborted) {
      try {
        if (this.#instanceId === '') {
          const { id, name } = await this.#client.findInstance()
          this.#instanceId = id
          this.#welcome = `Listening to ${name || id} (${id}) on ${server.origin}. Forwarding to ${target.href}.`
          await this.#findSecret()
        }
        await this.#follow()
        if (!signal.aborted) say('The stream ended. Connecting again.')
      } catch (error) {
        if (signal.aborted) return
        await this.#recover(error)
      }
    }
  }

  async #follow(): Promise<void> {
    const { event, say } = this.#options
    for await (const { cursor, item } of this.#client.follow(this.#cursor, event)) {
      if (this.#welcome !== null) say(this.#welcome)
      else if (this.#failures > 0) say('Connected again.')
      this.#welcome = null
      this.#failures = 0
      if (item !== null) await this.#forwarder.forward(item)
      this.#cursor = cursor
    }
  }

  async #recover(error: unknown): Promise<void> {
    const { say, server } = this.#options
    const remedy = error instanceof CallFailed ? REMEDIES[error.status] : undefined
    if (error instanceof CallFailed && error.status === CURSOR_EXPIRED) this.#cursor = ''
    if (remedy !== undefined) throw new ListenerStopped(remedy, { cause: error })
    const { code } = ((error as Error).cause ?? {}) as { code?: string }
    const why =
      error instanceof CallFailed ? error.message : `${server.origin} cannot be reached (${code ?? 'cut off'})`
    if (this.#failures === 0) say(`${why}. Trying again until the service answers.`)
    const pauseMs = RECONNECT_MS[Math.min(this.#failures, RECONNECT_MS.length - 1)]!
    this.#failures += 1
    const retryAfter = error instanceof CallFailed ? error.retryAfter : null
    await this.#pause(retryAfter === null ? pauseMs : retryAfter * 1_000).catch(() => undefined)
  }

  async #findSecret(): Promise<string> {
    if (this.#secret === null || performance.now() - this.#secret.readAt > SECRET_MS) {
      this.#secret = { value: await this.#client.findSecret(this.#instanceId), readAt: performance.now() }
    }
    return this.#secret.value
  }

  async #pause(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#options.signal })
  }
}
