/** How simulated phones download and upload files. They read and write the files of the media host directly. */
import { createHash, randomBytes } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { directPathOf, fileIdIn } from './direct-path.ts'
import {
  AlteredMedia,
  type ByteSource,
  decryptFile,
  encryptFile,
  type FileFacts,
  hashed,
  mediaKeys,
} from './media-cipher.ts'
import type { MediaMessage } from './media-content.ts'
import { MAX_FILE_BYTES, type MediaHost } from './media-host.ts'
import { type ContactMedia, MEDIA_TYPES, type MediaType, type ReceivedMedia } from './media-types.ts'

const CHUNK_BYTES = 64 * 1024

/** The file as its message states it. */
export function asStated({ description, facts: { size, sha256 } }: MediaMessage): ReceivedMedia {
  return { ...description, size, sha256: sha256.toString('hex') }
}

/** Downloads and decrypts the file of a message, and compares it with what the message states. */
export async function inspect(host: MediaHost, message: MediaMessage): Promise<ReceivedMedia> {
  const { description, directPath, facts } = message
  const stated = asStated(message)
  const encrypted = createHash('sha256')
  const source = await openFile(host, directPath)
  if (!source) return { ...stated, problem: 'missing' }
  const plain = createHash('sha256')
  let size = 0
  try {
    for await (const chunk of decryptFile(hashed(source, encrypted), mediaKeys(facts.mediaKey, description.type))) {
      size += chunk.length
      plain.update(chunk)
    }
  } catch (error) {
    if (error instanceof AlteredMedia || isDecryptionError(error)) return { ...stated, problem: 'altered' }
    throw error
  }
  const isAsStated =
    encrypted.digest().equals(facts.encSha256) && plain.digest().equals(facts.sha256) && size === facts.size
  return isAsStated ? stated : { ...stated, problem: 'altered' }
}

/** Downloads a file that {@link inspect} found intact, and uploads it again under another key. Null if it is gone. */
export async function forward(host: MediaHost, owner: string, { description, directPath, facts }: MediaMessage) {
  const source = await openFile(host, directPath)
  if (!source) return null
  const plain = decryptFile(source, mediaKeys(facts.mediaKey, description.type))
  return upload(host, owner, description.type, plain)
}

const TEXTS = ['mimetype', 'caption', 'filename', 'thumbnail'] as const
const NUMBERS = ['seconds', 'width', 'height'] as const

/** The problem with a file that a contact should send. Null if there is none. */
export function problemOf(media: ContactMedia): string | null {
  if (typeof media !== 'object' || media === null) return '`media` must be an object'
  if (!MEDIA_TYPES.includes(media.type)) return `\`media.type\` must be one of ${MEDIA_TYPES.join(', ')}`
  const { bytes, path, size } = media
  const given = [bytes instanceof Uint8Array, typeof path === 'string', Number.isSafeInteger(size) && Number(size) >= 0]
  if (given.filter(Boolean).length !== 1) return '`media` needs one of `bytes`, `path` and `size`'
  if (Number(size ?? 0) > MAX_FILE_BYTES) return `\`media.size\` may be at most ${MAX_FILE_BYTES}`
  const text = TEXTS.find(name => media[name] !== undefined && typeof media[name] !== 'string')
  if (text) return `\`media.${text}\` must be a string`
  const number = NUMBERS.find(name => media[name] !== undefined && !Number.isInteger(media[name]))
  return number ? `\`media.${number}\` must be a whole number` : null
}

/** A contact uploads a file for a message to the account `owner`. */
export function uploadOf(host: MediaHost, owner: string, { type, bytes, path, size = 0 }: ContactMedia) {
  const file = () => (path === undefined ? random(size) : createReadStream(path, { highWaterMark: CHUNK_BYTES }))
  return upload(host, owner, type, bytes ? chunksOf(bytes) : file())
}

async function upload(host: MediaHost, owner: string, type: MediaType, source: ByteSource) {
  const encryption = encryptFile(source, type)
  const directPath = directPathOf(await host.files.create(owner, encryption.bytes))
  return { ...encryption.facts(), directPath, url: host.urlOf(directPath) }
}

export type UploadedFile = FileFacts & { url: string; directPath: string }

async function openFile(host: MediaHost, directPath: string) {
  const named = fileIdIn(directPath)
  const file = named && (await host.files.find(named.id))
  return file?.stream() ?? null
}

function* chunksOf(bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) yield bytes.subarray(at, at + CHUNK_BYTES)
}

function* random(size: number): Generator<Uint8Array> {
  for (let left = size; left > 0; left -= CHUNK_BYTES) yield randomBytes(Math.min(left, CHUNK_BYTES))
}

/** OpenSSL's errors have codes such as `ERR_OSSL_WRONG_FINAL_BLOCK_LENGTH` and `ERR_OSSL_BAD_DECRYPT`. */
function isDecryptionError(error: unknown): boolean {
  return String((error as NodeJS.ErrnoException).code).startsWith('ERR_OSSL')
}
