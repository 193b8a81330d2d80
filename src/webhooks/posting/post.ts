import { type IncomingMessage, request as openRequest } from 'node:http'
import type { Readable } from 'node:stream'
import { isTestReceiver } from '../../domain/events/endpoint.ts'
import type { EndpointId, InstanceId } from '../../domain/ids.ts'
import type { AddressGuard } from '../../outbound/address-guard.ts'
import { type AttemptError, attemptError } from '../../outbound/attempt-error.ts'
import {
  createConnector,
  limitInterimResponses,
  MAX_HEADER_BYTES,
  type OwnedRequest,
} from '../../outbound/connector.ts'
import type { Lookup } from '../../outbound/resolver.ts'
import { Resolver } from '../../outbound/resolver.ts'

export interface PostRequest {
  url: string
  headers: Record<string, string>
  body: Uint8Array
  /** The endpoint that is posted to. DNS look-ups are limited for each instance. Default: none, as for alerts. */
  endpoint?: { instanceId: InstanceId; id: EndpointId } | undefined
  /** Aborts the attempt, whose outcome has no meaning then. Nothing is sent if the signal is already aborted. */
  signal?: AbortSignal | undefined
  /** Default: that of the poster. */
  timeoutMs?: number
}

/** The outcome of one request. It is `answered` if a status line and all headers arrived, even if the body fails. */
export type PostOutcome =
  | { kind: 'answered'; status: number; excerpt: string | null }
  | { kind: 'failed'; error: AttemptError }

export interface Poster {
  /** Makes at most one request. Rejects only if the URL or a header is not valid. */
  send(request: PostRequest): Promise<PostOutcome>
  close(): Promise<void>
}

export interface PosterOptions {
  guard: AddressGuard
  /** Default: the system's name resolution. */
  resolve?: Lookup
  /** The time limit of a whole request, from the name resolution to the last byte read. */
  timeoutMs: number
  /** Answers for the test receiver. Null: the request is posted like any other. */
  testReceiver?: (request: PostRequest) => Promise<PostOutcome> | null
}

const MAX_READ_BYTES = 64 * 1024
const MAX_READ_MS = 2_000
const MAX_KEPT_BYTES = 1024

const decoder = new TextDecoder('utf-8')
const encoder = new TextEncoder()
const scratch = new Uint8Array(MAX_KEPT_BYTES)

/** DNS look-ups of new names that one instance may have at the same time. */
const LOOKUPS_PER_OWNER = 2

function systemResolve(): Lookup {
  const resolver = new Resolver({ maxPerOwner: LOOKUPS_PER_OWNER })
  return (hostname, owner) => resolver.resolve(hostname, owner)
}

/** Posts over HTTP/1.1 without redirects, compression or proxies. */
export function createPoster({ resolve = systemResolve(), guard, testReceiver, ...defaults }: PosterOptions): Poster {
  const connector = createConnector({ guard, resolve })

  async function send(post: PostRequest): Promise<PostOutcome> {
    const { url, headers, body, signal, endpoint, timeoutMs = defaults.timeoutMs } = post
    if (signal?.aborted) return { kind: 'failed', error: 'timeout' }
    const answer = isTestReceiver(url) ? testReceiver?.(post) : null
    if (answer) return answer
    const { promise, resolve } = Promise.withResolvers<PostOutcome>()
    const { protocol, hostname, port, pathname, search } = new URL(url)
    const request = openRequest({
      method: 'POST',
      agent: connector.agentFor(protocol),
      protocol,
      // An IPv6 address without its brackets.
      host: hostname.replace(/^\[|\]$/g, ''),
      port,
      path: pathname + search,
      headers,
      maxHeaderSize: MAX_HEADER_BYTES,
      ...({ owner: endpoint?.instanceId } satisfies OwnedRequest),
    })
    // Has no effect once the request is answered.
    const fail = (error: AttemptError) => resolve({ kind: 'failed', error })
    const end = (error: AttemptError) => {
      // Before `destroy`, because the parser may still emit a final response from the same bytes.
      fail(error)
      request.destroy()
    }
    const stop = () => end('timeout')
    const timer = setTimeout(stop, timeoutMs)
    signal?.addEventListener('abort', stop)
    limitInterimResponses(request, () => end('protocol_error'))
    request
      .on('response', head => resolve(readAnswer(head)))
      .on('error', error => fail(attemptError(error)))
      .on('close', () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', stop)
        // If the consumer switches protocols without being asked, this is the only event.
        fail('connection_reset')
      })
      .end(body)
    return promise
  }

  return { send, close: async () => connector.destroy() }
}

/** Starts to read immediately, so that every error of the body has a listener. */
async function readAnswer(head: IncomingMessage): Promise<PostOutcome> {
  const { statusCode: status = 0, headers } = head
  const isRedirect = status >= 300 && status < 400 && headers.location !== undefined
  const preface = isRedirect ? `Location: ${headers.location}\n\n` : ''
  const beginning = decoder.decode(await readBeginning(head))
  // Text that both databases can store: valid UTF-8 without U+0000, at most 1 KiB.
  const text = (preface + beginning).replaceAll('\0', '\uFFFD')
  const { read } = encoder.encodeInto(text, scratch)
  return { kind: 'answered', status, excerpt: text.slice(0, read) || null }
}

/**
 * The first 1 KiB of a response body, or less if the body ends or fails earlier. Reads at most 64 KiB for at most 2 s. The
 * connection can be used again only if the body was read to its end.
 */
function readBeginning(body: Readable): Promise<Uint8Array> {
  const { promise, resolve } = Promise.withResolvers<Uint8Array>()
  const parts: Buffer[] = []
  let keptBytes = 0
  let readBytes = 0
  const end = () => body.destroy()
  const timer = setTimeout(end, MAX_READ_MS)
  body
    .on('data', (chunk: Buffer) => {
      const part = chunk.subarray(0, MAX_KEPT_BYTES - keptBytes)
      if (part.length > 0) parts.push(Buffer.from(part))
      keptBytes += part.length
      readBytes += chunk.length
      if (readBytes >= MAX_READ_BYTES) end()
    })
    // Followed by `close`.
    .on('error', () => undefined)
    .on('close', () => {
      clearTimeout(timer)
      resolve(Buffer.concat(parts))
    })
  return promise
}
