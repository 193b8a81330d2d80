import { Agent } from 'undici'
import type { AddressGuard } from './address-guard.ts'
import type { AttemptError } from './attempt-error.ts'
import { attemptError } from './attempt-error.ts'
import { createConnector } from './connector.ts'
import { excerptOf, readBeginning } from './excerpt.ts'
import type { Lookup } from './resolver.ts'
import { createResolver } from './resolver.ts'

export interface PostRequest {
  url: string
  headers: Record<string, string>
  body: Uint8Array
  /** Ends the attempt early; its outcome then means nothing. */
  signal?: AbortSignal | undefined
}

/** What came of one attempt. Any status line is an answer, whatever its body does. */
export type PostOutcome =
  | { kind: 'answered'; status: number; excerpt: string | null }
  | { kind: 'failed'; error: AttemptError }

export interface Poster {
  /** Makes at most one request; never rejects. */
  send(request: PostRequest): Promise<PostOutcome>
  close(): Promise<void>
}

export interface PosterOptions {
  guard: AddressGuard
  /** By default the system's look-up. */
  resolve?: Lookup
  /** From the look-up of the name to the end of the reading. */
  timeoutMs: number
}

/**
 * An idle connection is not used again after this time. A consumer that closes idle connections later than this (most do
 * after 5 s or more) can thus not close one just as we write to it: such an attempt would fail without the
 * consumer's having seen it, and to repeat it unasked would make one attempt two requests.
 */
const KEEP_ALIVE_MS = 1_000
const CONNECT_MARGIN_MS = 1_000
const MAX_HEADER_BYTES = 16 * 1024

/** undici's own timeouts restart with every byte; the attempt has one deadline instead. */
const NO_TIMEOUT = 0

/** Posts over HTTP/1.1: follows no redirect, asks for no compression, uses no proxy. */
export function createPoster({ guard, timeoutMs, resolve = createResolver() }: PosterOptions): Poster {
  const agent = new Agent({
    connect: createConnector({ guard, resolve, timeoutMs: connectTimeoutMs(timeoutMs) }),
    allowH2: false,
    pipelining: 1,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
    keepAliveTimeoutThreshold: KEEP_ALIVE_MS,
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: NO_TIMEOUT,
    bodyTimeout: NO_TIMEOUT,
  })

  async function answerTo(request: PostRequest, signal: AbortSignal): Promise<PostOutcome> {
    const { origin, pathname, search } = new URL(request.url)
    const { headers, body } = request
    const answer = agent.request({ origin, path: pathname + search, method: 'POST', headers, body, signal })
    // undici heeds the signal only once it is connected.
    const head = await Promise.race([answer, rejectionBy(signal)])
    const note = redirectNote(head.statusCode, head.headers['location'])
    return { kind: 'answered', status: head.statusCode, excerpt: excerptOf(await readBeginning(head.body), note) }
  }

  async function send(request: PostRequest): Promise<PostOutcome> {
    const deadline = new AbortController()
    const end = () => deadline.abort()
    const timer = setTimeout(end, timeoutMs)
    request.signal?.addEventListener('abort', end)
    try {
      return await answerTo(request, deadline.signal)
    } catch (error) {
      return { kind: 'failed', error: deadline.signal.aborted ? 'timeout' : attemptError(error) }
    } finally {
      clearTimeout(timer)
      request.signal?.removeEventListener('abort', end)
    }
  }

  return { send, close: () => agent.destroy() }
}

/** undici's timer is up to a second late; a connection that hangs must be gone before the next attempt could join it. */
function connectTimeoutMs(timeoutMs: number): number {
  return timeoutMs > 2 * CONNECT_MARGIN_MS ? timeoutMs - CONNECT_MARGIN_MS : timeoutMs
}

function rejectionBy(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
}

/** Tells where a redirect, which is not followed, pointed to. */
function redirectNote(status: number, location: string | string[] | undefined): string {
  return status >= 300 && status < 400 && typeof location === 'string' ? `Location: ${location}\n\n` : ''
}
