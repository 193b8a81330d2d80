import { type Agent, request } from 'node:https'
import { pipeline } from 'node:stream/promises'
import { FileUnavailable, type MediaForm } from '../../../domain/media.ts'
import { encryptedSize, encryptForWhatsapp } from './cipher.ts'
import { isMediaHost } from './hosts.ts'

const ORIGIN = 'https://web.whatsapp.com'
/** The longest time without a byte in either direction. */
const SILENCE_MS = 30_000
const MAX_ANSWER_BYTES = 65_536
/** After these statuses of a media host, another attempt would fail in the same way. */
const FINAL: Partial<Record<number, UploadFailed['failure']>> = { 413: 'media_too_large', 415: 'media_unsupported' }
/** Baileys `MEDIA_PATH_MAP`. */
const PATHS: Readonly<Record<MediaForm, string>> = {
  image: 'image',
  sticker: 'image',
  video: 'video',
  audio: 'audio',
  voice: 'audio',
  document: 'document',
}

/** The media hosts that WhatsApp names, and the authorization for uploads. */
export interface MediaConnection {
  hosts: readonly { hostname: string }[]
  auth: string
}

/** Where an uploaded file is. */
export interface UploadedFile {
  url: string
  directPath: string
}

/** No media host accepted the file. */
export class UploadFailed extends Error {
  override readonly name = 'UploadFailed'
  /** Null: the next attempt may succeed. */
  readonly failure: 'media_too_large' | 'media_unsupported' | null

  constructor(message: string, failure: UploadFailed['failure'] = null) {
    super(message)
    this.failure = failure
  }
}

interface FileToUpload {
  form: MediaForm
  mediaKey: Uint8Array
  encSha256: Uint8Array
  /** The size of the file before its encryption. */
  size: number
  /** Reads the file from its first byte, once for each host that is tried. */
  open(): Promise<AsyncIterable<Uint8Array>>
}

export interface UploadOptions {
  /** `renew`: the known authorization has expired. */
  connect(renew: boolean): Promise<MediaConnection>
  /** True: only hosts on loopback are used, and their certificates are not verified. False: only WhatsApp's own hosts. */
  simulated: boolean
  /** Creates an agent for the connections to the hosts. It uses the proxy of the instance, if there is one. */
  openAgent(): Agent
  signal: AbortSignal
}

/** Uploads to the first host that accepts the file. Renews a refused authorization once. @throws UploadFailed */
export async function uploadFile(file: FileToUpload, options: UploadOptions): Promise<UploadedFile> {
  const { connect, simulated, openAgent, signal } = options
  const agent = openAgent()
  let why = 'WhatsApp names no media host.'
  try {
    for (const renew of [false, true]) {
      const { hosts, auth } = await connect(renew)
      let isRefused = false
      for (const { hostname } of hosts) {
        if (!isMediaHost(hostname, simulated)) continue
        if (signal.aborted) throw new UploadFailed(why)
        const outcome = await post(file, { hostname, auth, agent, signal }).catch(asReason)
        if (typeof outcome === 'object') return outcome
        why = outcome
        isRefused ||= outcome === REFUSED
      }
      if (!isRefused) break
    }
  } finally {
    agent.destroy()
  }
  throw new UploadFailed(why)
}

const REFUSED = 'The authorization was refused.'

interface Target {
  hostname: string
  auth: string
  agent: Agent
  signal: AbortSignal
}

/** @returns where the file is, or the reason why the host did not accept it */
async function post(
  { form, mediaKey, encSha256, size, open }: FileToUpload,
  { hostname, auth, agent, signal }: Target,
): Promise<UploadedFile | string> {
  const token = Buffer.from(encSha256).toString('base64url')
  const query = new URLSearchParams({ auth, token })
  const sent = request(`https://${hostname}/mms/${PATHS[form]}/${token}?${query}`, {
    method: 'POST',
    agent,
    signal,
    timeout: SILENCE_MS,
    headers: {
      'content-type': 'application/octet-stream',
      'content-length': encryptedSize(size),
      origin: ORIGIN,
    },
  })
  sent.on('timeout', () => sent.destroy(new Error('The media host does not answer.')))
  const answered = new Promise<{ status: number; text: string }>((resolve, reject) => {
    sent.once('error', reject)
    sent.once('response', response => {
      let text = ''
      response.setEncoding('utf8').on('data', part => {
        text += part
        if (text.length > MAX_ANSWER_BYTES) sent.destroy(new Error('The answer is too long.'))
      })
      response.once('end', () => resolve({ status: response.statusCode ?? 0, text }))
      response.once('error', reject)
    })
  })
  // The link may close while the file is being opened, before anybody waits for the answer.
  answered.catch(() => undefined)
  // The host may answer before the whole file is sent.
  const written = pipeline(encryptForWhatsapp(mediaKey, form, await open()), sent)
  written.catch(() => undefined)
  const { status, text } = await answered
  if (status === 401 || status === 403) return REFUSED
  const failure = FINAL[status]
  if (failure) throw new UploadFailed(`The media host answered ${status}.`, failure)
  if (status !== 200) return `The media host answered ${status}.`
  await written
  return parseAnswer(text) ?? 'The media host did not say where the file is.'
}

/** The reason as text, if another host may accept the file. @throws UploadFailed and FileUnavailable unchanged */
function asReason(error: unknown): string {
  if (error instanceof UploadFailed || error instanceof FileUnavailable) throw error
  return String(error)
}

function parseAnswer(text: string): UploadedFile | null {
  try {
    const { url, direct_path: directPath } = JSON.parse(text)
    return typeof url === 'string' && typeof directPath === 'string' ? { url, directPath } : null
  } catch {
    return null
  }
}
