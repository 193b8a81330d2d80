import { type Agent, type IncomingMessage, request as openRequest } from 'node:http'
import { refuseSmallChunks } from '../../kit/chunk-limit.ts'
import { AttemptFailed, attemptError } from '../../outbound/attempt-error.ts'
import { limitInterimResponses, MAX_HEADER_BYTES, type OwnedRequest } from '../../outbound/connector.ts'

const MAX_REDIRECTS = 3
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])
/** After these statuses below 500, another attempt may succeed: timeout, too early, too many requests. */
const PASSING: ReadonlySet<number> = new Set([408, 425, 429])

/** The longest time without a byte. */
const SILENCE_MS = 15_000

/** The file could not be fetched from its URL. */
export class FetchFailed extends Error {
  override readonly name = 'FetchFailed'
  /** Another attempt would fail in the same way. */
  readonly isFinal: boolean

  constructor(message: string, isFinal: boolean) {
    super(message)
    this.isFinal = isFinal
  }
}

/** A response with the bytes of a file. */
interface OpenedUrl {
  /** As the host declares it; null if the host declares none. */
  mimetype: string | null
  /** As the host declares it. */
  size: number | null
  /** @throws FetchFailed if the bytes end early, or arrive in too many small chunks */
  bytes: AsyncIterable<Uint8Array>
}

interface OpenUrlOptions extends OwnedRequest {
  /** Checks the address of each connection. */
  agentFor(protocol: string): Agent
  version: string
  signal: AbortSignal
}

/** Requests a file without credentials, compression or proxies, and follows redirects. @throws FetchFailed */
export async function openUrl(from: string, options: OpenUrlOptions): Promise<OpenedUrl> {
  let url: URL = new URL(from)
  for (let redirects = 0; ; redirects += 1) {
    const response = await get(url, options)
    const { statusCode: status = 0, headers } = response
    if (status === 200) return checked(response, options.signal)
    // The connection is not used again, because the body may be endless.
    response.destroy()
    if (!REDIRECTS.has(status) || headers.location === undefined)
      throw new FetchFailed(`The host answered ${status}.`, status < 500 && !PASSING.has(status))
    if (redirects === MAX_REDIRECTS) throw new FetchFailed('The host redirects too often.', true)
    const next = URL.parse(headers.location, url.href)
    if (next?.protocol !== 'http:' && next?.protocol !== 'https:')
      throw new FetchFailed('The host redirects to something that is not http or https.', true)
    url = next
  }
}

function get({ protocol, hostname, port, pathname, search }: URL, options: OpenUrlOptions): Promise<IncomingMessage> {
  const { agentFor, version, signal, owner } = options
  return new Promise((resolve, reject) => {
    const request = openRequest({
      agent: agentFor(protocol),
      protocol,
      // An IPv6 address without its brackets.
      host: hostname.replace(/^\[|\]$/g, ''),
      port,
      path: pathname + search,
      headers: { accept: '*/*', 'accept-encoding': 'identity', 'user-agent': `Pombal/${version}` },
      maxHeaderSize: MAX_HEADER_BYTES,
      timeout: SILENCE_MS,
      ...({ owner } satisfies OwnedRequest),
      signal,
    })
    limitInterimResponses(request, () =>
      request.destroy(new AttemptFailed('protocol_error', 'The host sends too many interim responses.')),
    )
    request
      .on('timeout', () => request.destroy(new AttemptFailed('timeout', 'The host does not answer.')))
      .on('response', resolve)
      .on('error', error => reject(failureOf(error)))
      // If the host switches protocols without being asked, this is the only event.
      .on('close', () => reject(new FetchFailed('connection_reset', false)))
      .end()
  })
}

function checked(response: IncomingMessage, signal: AbortSignal): OpenedUrl {
  const { 'content-length': length, 'content-type': type } = response.headers
  const encoding = encodingOf(response)
  if (encoding !== null) {
    response.destroy()
    throw new FetchFailed(`The host sends the file with the encoding ${encoding}.`, true)
  }
  const size = length === undefined ? null : Number(length)
  // Begun here, so that the chunks that arrive before the first read are limited too.
  const bytes = refuseSmallChunks(response, () => new FetchFailed('The file arrives in too many small chunks.', true))
  return { mimetype: type ?? null, size, bytes: withFailures(response, bytes, signal) }
}

/** Null: the bytes are those of the file. Node undoes only `chunked`. */
function encodingOf({ headers }: IncomingMessage): string | null {
  const { 'content-encoding': content = 'identity', 'transfer-encoding': transfer = 'chunked' } = headers
  if (content.toLowerCase() !== 'identity') return content
  return transfer.toLowerCase() === 'chunked' ? null : transfer
}

async function* withFailures(
  response: IncomingMessage,
  bytes: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  try {
    yield* bytes
  } catch (error) {
    throw failureOf(error)
  } finally {
    response.destroy()
  }
  // A body that is cut ends without an error if its reader has aborted it.
  if (signal.aborted || !response.complete) throw new FetchFailed('connection_reset', false)
}

/** Replaces Node's error with its code, so that no address of the internal network is shown. */
function failureOf(error: unknown): FetchFailed {
  if (error instanceof FetchFailed) return error
  const code = attemptError(error)
  return new FetchFailed(code, code === 'blocked_address')
}
