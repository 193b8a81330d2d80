import { createHash, randomBytes } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { type Answer, ApiHarness, type Created } from '../api/harness.ts'

const PNG_START = Buffer.from(
  '89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4897fffffff49444154',
  'hex',
)

/** A PNG with random content. */
export function png(size: number): Buffer {
  return Buffer.concat([PNG_START, randomBytes(Math.max(0, size - PNG_START.length))]).subarray(0, size)
}

/** The files of all instances in the storage, without the file that has the ID of the folder. */
export function filesIn(folder: string): string[] {
  if (!existsSync(folder)) return []
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  return entries.flatMap(entry =>
    entry.isFile() && entry.name !== 'folder.id' ? [join(entry.parentPath, entry.name)] : [],
  )
}

export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** Uploads and downloads of one instance. */
export class MediaClient {
  readonly #url: string
  readonly token: string

  constructor(url: string, { token }: Pick<Created, 'token'>) {
    this.#url = `${url}/v1/media`
    this.token = token
  }

  async upload(bytes: Uint8Array | ReadableStream, headers: Record<string, string> = {}, query = ''): Promise<Answer> {
    const response = await fetch(`${this.#url}${query}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${this.token}`, ...headers },
      body: bytes as unknown as ReadableStream,
      duplex: 'half',
    } as RequestInit)
    return this.#answer(response)
  }

  async call(method: string, id: string, headers: Record<string, string> = {}): Promise<Response> {
    return fetch(`${this.#url}/${id}`, { method, headers: { authorization: `Bearer ${this.token}`, ...headers } })
  }

  async download(id: string, headers: Record<string, string> = {}): Promise<{ status: number; bytes: Buffer }> {
    const response = await this.call('GET', id, headers)
    return { status: response.status, bytes: Buffer.from(await response.arrayBuffer()) }
  }

  /** The code of a refused call. */
  async codeOf(method: string, id: string): Promise<string> {
    return (await this.#answer(await this.call(method, id))).body.error.code
  }

  /** An upload whose body the test writes. */
  open(length: number | null, type?: string) {
    const headers = {
      ...(type !== undefined && { 'content-type': type }),
      authorization: `Bearer ${this.token}`,
      ...(length === null ? { 'transfer-encoding': 'chunked' } : { 'content-length': length }),
    }
    const sent = request(this.#url, { method: 'POST', headers, agent: false })
    const answered = new Promise<{ status: number; code: string | undefined }>((resolve, reject) => {
      sent.on('error', reject)
      sent.on('response', response => {
        let text = ''
        response.setEncoding('utf8').on('data', part => {
          text += part
        })
        response.on('end', () => resolve({ status: response.statusCode ?? 0, code: JSON.parse(text).error?.code }))
      })
    })
    answered.catch(() => undefined)
    return { sent, answered }
  }

  async #answer(response: Response): Promise<Answer> {
    const text = await response.text()
    return {
      status: response.status,
      headers: response.headers,
      text,
      body: text === '' ? undefined : JSON.parse(text),
    }
  }
}

export async function startMediaApi(...options: Parameters<typeof ApiHarness.start>) {
  const api = await ApiHarness.start(...options)
  const create = async () => new MediaClient(api.url, await api.createInstance())
  return { api, create, client: await create() }
}
