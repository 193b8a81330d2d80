import { type ClientRequest, type IncomingMessage, request as openRequest } from 'node:http'
import type { AddressGuard } from './address-guard.ts'
import type { AttemptError } from './attempt-error.ts'
import { attemptError, ClosedWithoutAnswer, TooManyInterimAnswers } from './attempt-error.ts'
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

const MAX_HEADER_BYTES = 16 * 1024
/** Interim answers (RFC 9110, section 15.2) that one attempt may get before its final one; 16 KiB of headers in all of them. */
const MAX_INTERIM_ANSWERS = 16

/** Posts over HTTP/1.1: follows no redirect, asks for no compression, uses no proxy. */
export function createPoster({ guard, timeoutMs, resolve = createResolver() }: PosterOptions): Poster {
  const connector = createConnector({ guard, resolve })

  function answerTo({ url, headers, body }: PostRequest, signal: AbortSignal): Promise<PostOutcome> {
    return new Promise((answered, failed) => {
      const target = new URL(url)
      const options = { method: 'POST', headers, signal, maxHeaderSize: MAX_HEADER_BYTES }
      const request = openRequest(target, { ...options, ...connector.optionsFor(target) })
      boundInterimAnswers(request, failed)
      request.on('response', head => answered(readAnswer(head))).on('error', failed)
      // The only event where the consumer switches protocols unasked.
      request.on('close', () => failed(new ClosedWithoutAnswer()))
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

function boundInterimAnswers(request: ClientRequest, failed: (error: Error) => void): void {
  let answers = 0
  let headerBytes = 0
  request.on('information', ({ rawHeaders }) => {
    answers += 1
    for (const text of rawHeaders) headerBytes += text.length
    if (answers <= MAX_INTERIM_ANSWERS && headerBytes <= MAX_HEADER_BYTES) return
    // A final answer among the bytes that are being parsed comes too late.
    failed(new TooManyInterimAnswers())
    request.destroy()
  })
}

/** Begins to read at once, so that no error of the body is left unheard. */
async function readAnswer(head: IncomingMessage): Promise<PostOutcome> {
  const { statusCode: status = 0, headers } = head
  const note = redirectNote(status, headers.location)
  return { kind: 'answered', status, excerpt: excerptOf(await readBeginning(head), note) }
}

/** Tells where a redirect, which is not followed, pointed to. */
function redirectNote(status: number, location: string | undefined): string {
  return status >= 300 && status < 400 && location !== undefined ? `Location: ${location}\n\n` : ''
}
