import type { IncomingMessage } from 'node:http'
import { type Agent, request } from 'node:https'
import { type FileSource, MAX_MEDIA_BYTES } from '../../../domain/media.ts'
import { decryptFromWhatsapp, encryptedSize } from './cipher.ts'
import { isMediaHost, isMediaPath } from './hosts.ts'

const ORIGIN = 'https://web.whatsapp.com'
/** The longest time without a byte. */
const SILENCE_MS = 30_000
/** Statuses for a file that a media host no longer has. 403: the signature in its path has expired. */
const GONE: ReadonlySet<number> = new Set([403, 404, 410])
const MAX_SEALED_BYTES = encryptedSize(MAX_MEDIA_BYTES)

/** The file could not be downloaded. `gone`: no media host has it. `maybe_gone`: one does not have it, and another did not say. */
export class DownloadFailed extends Error {
  override readonly name = 'DownloadFailed'
  readonly kind: 'gone' | 'maybe_gone' | 'unavailable' | 'too_large'

  constructor(message: string, kind: DownloadFailed['kind']) {
    super(message)
    this.kind = kind
  }
}

interface DownloadOptions {
  /** The hosts that WhatsApp names. Nothing that a sender writes decides which host is asked. */
  findHosts(): Promise<readonly { hostname: string }[]>
  simulated: boolean
  /** Creates an agent for the connections to the hosts. It uses the proxy of the instance, if there is one. */
  openAgent(): Agent
  signal: AbortSignal
}

/**
 * Downloads a file from the first host that has it, and decrypts it.
 * @throws DownloadFailed, errors of `findHosts`, or AlteredFile after the last byte: discard the bytes then
 */
export async function* downloadFile(source: FileSource, options: DownloadOptions): AsyncGenerator<Uint8Array> {
  const agent = options.openAgent()
  try {
    const sealed = limit(await find(source.directPath, agent, options))
    yield* decryptFromWhatsapp(source.mediaKey, source.form, sealed, source)
  } finally {
    agent.destroy()
  }
}

async function find(
  path: string,
  agent: Agent,
  { findHosts, simulated, signal }: DownloadOptions,
): Promise<IncomingMessage> {
  if (!isMediaPath(path)) throw new DownloadFailed('The path of the file is not valid.', 'gone')
  let failure = new DownloadFailed('WhatsApp names no media host.', 'unavailable')
  let isUnsure = false
  for (const { hostname } of await findHosts()) {
    if (!isMediaHost(hostname, simulated)) continue
    const answer = await get(hostname, path, agent, signal).catch(String)
    if (typeof answer === 'object' && answer.statusCode === 200) return answer
    const isGone = typeof answer === 'object' && GONE.has(answer.statusCode ?? 0)
    if (typeof answer === 'object') answer.destroy()
    isUnsure ||= !isGone
    if (failure.kind === 'gone') continue
    const why = typeof answer === 'string' ? answer : `The media host answered ${answer.statusCode}.`
    failure = new DownloadFailed(why, isGone ? 'gone' : 'unavailable')
  }
  throw failure.kind === 'gone' && isUnsure ? new DownloadFailed(failure.message, 'maybe_gone') : failure
}

function get(hostname: string, path: string, agent: Agent, signal: AbortSignal): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const { hostname: host, port } = new URL(`https://${hostname}`)
  // The path is sent as it is: nothing in it can name another host.
  const sent = request({ host, port, path, agent, signal, timeout: SILENCE_MS, headers: { origin: ORIGIN } })
  sent.on('timeout', () => sent.destroy(new Error('The media host does not answer.')))
  sent.on('error', reject)
  sent.once('response', resolve)
  sent.end()
  return promise
}

/** @throws DownloadFailed `too_large`; `unavailable` if the transfer ends early */
async function* limit(response: IncomingMessage): AsyncGenerator<Uint8Array> {
  let size = Number(response.headers['content-length'] ?? 0)
  if (size > MAX_SEALED_BYTES) throw tooLarge()
  size = 0
  try {
    for await (const part of response) {
      size += part.length
      if (size > MAX_SEALED_BYTES) throw tooLarge()
      yield part
    }
  } catch (error) {
    if (error instanceof DownloadFailed) throw error
    throw new DownloadFailed(String(error), 'unavailable')
  }
}

function tooLarge(): DownloadFailed {
  return new DownloadFailed('The file is larger than the limit for files.', 'too_large')
}
