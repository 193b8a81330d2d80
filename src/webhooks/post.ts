import { type ClientRequest, type IncomingMessage, request as openRequest } from 'node:http'
import type { AddressGuard } from './address-guard.ts'
import type { AttemptError } from './attempt-error.ts'
import { AttemptFailed, attemptError } from './attempt-error.ts'
import { createConnector } from './connector.ts'
import { excerptOf, readBeginning } from './excerpt.ts'
import type { Lookup } from './resolver.ts'
import { Resolver } from './resolver.ts'

export interface PostRequest {
  url: string
  headers: Record<string, string>
  body: Uint8Array
  /** Aborts the attempt; ignore the outcome then. */
  signal?: AbortSignal | undefined
}

/** The outcome of one request. It is `answered` once a status line came, even if the body fails. */
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
  /** By default the system's name resolution. */
  resolve?: Lookup
  /** For the whole request, from the name resolution to the last byte read. */
  timeoutMs: number
}

const MAX_HEADER_BYTES = 16 * 1024
/** Interim responses (RFC 9110, section 15.2) accepted before the final one, with at most `MAX_HEADER_BYTES` in all. */
const MAX_INTERIM_RESPONSES = 16

function systemResolve(): Lookup {
  const resolver = new Resolver()
  return hostname => resolver.resolve(hostname)
}

/** Posts over HTTP/1.1 without redirects, compression or proxies. */
export function createPoster({ guard, timeoutMs, resolve = systemResolve() }: PosterOptions): Poster {
  const connector = createConnector({ guard, resolve })

  function answerTo({ url, headers, body }: PostRequest, signal: AbortSignal): Promise<PostOutcome> {
    return new Promise((answered, failed) => {
      const target = new URL(url)
      const options = { method: 'POST', headers, signal, maxHeaderSize: MAX_HEADER_BYTES }
      const request = openRequest(target, { ...options, ...connector.optionsFor(target) })
      limitInterimResponses(request, failed)
      let isAnswered = false
      request.on('error', failed).on('response', head => {
        isAnswered = true
        answered(readAnswer(head))
      })
      // If the consumer switches protocols without being asked, this is the only event.
      request.on('close', () => isAnswered || failed(new AttemptFailed('connection_reset', 'No response.')))
      request.end(body)
    })
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

  return { send, close: async () => connector.destroy() }
}

function limitInterimResponses(request: ClientRequest, failed: (error: Error) => void): void {
  let responses = 0
  let headerBytes = 0
  request.on('information', ({ rawHeaders }) => {
    responses += 1
    for (const text of rawHeaders) headerBytes += text.length
    if (responses <= MAX_INTERIM_RESPONSES && headerBytes <= MAX_HEADER_BYTES) return
    // Before `destroy`, because the parser may still emit a final response from the same bytes.
    failed(new AttemptFailed('protocol_error', 'Too many interim responses.'))
    request.destroy()
  })
}

/** Starts to read at once, so that every error of the body has a listener. */
async function readAnswer(head: IncomingMessage): Promise<PostOutcome> {
  const { statusCode: status = 0, headers } = head
  const note = redirectNote(status, headers.location)
  return { kind: 'answered', status, excerpt: excerptOf(await readBeginning(head), note) }
}

/** The target of a redirect, for the excerpt. */
function redirectNote(status: number, location: string | undefined): string {
  return status >= 300 && status < 400 && location !== undefined ? `Location: ${location}\n\n` : ''
}
