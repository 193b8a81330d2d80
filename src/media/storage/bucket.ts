import type { Readable } from 'node:stream'
import {
  AbortMultipartUploadCommand,
  type CompletedPart,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  ListMultipartUploadsCommand,
  NoSuchKey,
  PutObjectCommand,
  S3Client,
  S3ServiceException,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import type { ByteRange, MediaPlace } from '../../domain/media.ts'
import type { MediaStorage } from './storage.ts'

/** The smallest part that S3 allows. One part is all that an upload holds in memory. */
const PART_BYTES = 5 * 1_048_576
const NOT_IMPLEMENTED = 501
/** A name that no object has, not even an object of another program in the same bucket. */
const CHECKED_NAME = '.pombal-check'
const CONNECT_TIMEOUT_MS = 5_000
/** The longest time without a byte. */
const SILENCE_TIMEOUT_MS = 30_000
/** How often a read is sent to a bucket that stays silent. */
const READ_ATTEMPTS = 2
/**
 * The client's default of 50 is less than the downloads, previews, uploads and fetches that a node allows together. A download keeps its
 * socket as long as its caller reads, so slow callers would stop everything else. Each use of the storage has its own limit.
 */
const SOCKETS = { maxSockets: Number.POSITIVE_INFINITY }

/**
 * Files in an S3-compatible bucket. An object exists only when it is complete. The credentials come from where the AWS tools
 * look for them: `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, a profile, or the machine's role.
 */
export class BucketStorage implements MediaStorage {
  readonly #client: S3Client
  readonly #readClient: S3Client
  readonly #bucket: string
  readonly #prefix: string
  readonly #silenceMs: number

  constructor(place: MediaPlace & { kind: 'bucket' }, { silenceMs = SILENCE_TIMEOUT_MS } = {}) {
    this.#bucket = place.bucket
    this.#prefix = place.prefix
    this.#silenceMs = silenceMs
    this.#client = createClient(place, silenceMs)
    // The client's time limit would also run while a caller pauses, and cut its download.
    this.#readClient = createClient(place, 0)
  }

  async write(name: string, bytes: AsyncIterable<Uint8Array>): Promise<void> {
    const object = this.#object(name)
    let upload: Parts | null = null
    try {
      const part = Buffer.allocUnsafeSlow(PART_BYTES)
      let length = 0
      for await (const piece of bytes) {
        for (let from = 0; from < piece.length; ) {
          if (length === PART_BYTES) {
            upload ??= await Parts.begin(this.#client, object)
            await upload.send(part)
            length = 0
          }
          const taken = piece.subarray(from, from + PART_BYTES - length)
          part.set(taken, length)
          length += taken.length
          from += taken.length
        }
      }
      const rest = part.subarray(0, length)
      if (upload === null) await this.#client.send(new PutObjectCommand({ ...object, Body: rest }))
      else await upload.complete(rest)
    } catch (error) {
      // If this also fails, `remove` aborts the upload later.
      await upload?.abort().catch(() => undefined)
      throw error
    }
  }

  async read(name: string, { from, to }: ByteRange): Promise<AsyncIterable<Uint8Array> | null> {
    const command = new GetObjectCommand({ ...this.#object(name), Range: `bytes=${from}-${to}` })
    for (let attempt = 1; ; attempt += 1) {
      const silence = new AbortController()
      const timer = setTimeout(() => silence.abort(silent()), this.#silenceMs)
      try {
        const { Body } = await this.#readClient.send(command, { abortSignal: silence.signal })
        return readParts(Body as Readable, this.#silenceMs)
      } catch (error) {
        if (error instanceof NoSuchKey) return null
        // A connection may have died unnoticed.
        if (!silence.signal.aborted || attempt === READ_ATTEMPTS) throw error
      } finally {
        clearTimeout(timer)
      }
    }
  }

  async remove(name: string): Promise<void> {
    const { Key } = this.#object(name)
    for (const UploadId of await this.#listUploads(Key))
      await this.#client.send(new AbortMultipartUploadCommand({ ...this.#object(name), UploadId }))
    await this.#client.send(new DeleteObjectCommand(this.#object(name)))
  }

  /** The IDs of interrupted uploads. If a service cannot list them, a rule of the bucket must remove them. */
  async #listUploads(key: string): Promise<(string | undefined)[]> {
    try {
      const command = new ListMultipartUploadsCommand({ Bucket: this.#bucket, Prefix: key })
      const { Uploads = [] } = await this.#client.send(command)
      return Uploads.map(({ UploadId }) => UploadId)
    } catch (error) {
      if (error instanceof S3ServiceException && error.$metadata.httpStatusCode === NOT_IMPLEMENTED) return []
      throw error
    }
  }

  /** Removes an object that does not exist. This requires the bucket, the credentials and two of the permissions. */
  async check(): Promise<void> {
    await this.remove(CHECKED_NAME)
  }

  async close(): Promise<void> {
    this.#client.destroy()
    this.#readClient.destroy()
  }

  #object(name: string): { Bucket: string; Key: string } {
    return { Bucket: this.#bucket, Key: this.#prefix + name }
  }
}

/** @param silenceMs the longest time without a byte, in either direction; 0: no limit */
function createClient({ endpoint, region }: MediaPlace & { kind: 'bucket' }, silenceMs: number): S3Client {
  return new S3Client({
    ...(region !== null && { region }),
    // Other services rarely support a host name for each bucket, and some do not support Amazon's newest checksums.
    ...(endpoint !== null && { endpoint, forcePathStyle: true }),
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: {
      connectionTimeout: CONNECT_TIMEOUT_MS,
      socketTimeout: silenceMs,
      httpAgent: SOCKETS,
      httpsAgent: SOCKETS,
    },
  })
}

function silent(): Error {
  return new Error('The bucket sends nothing.')
}

/** The reader may pause between two parts, but the bucket may not. */
async function* readParts(body: Readable, silenceMs: number): AsyncGenerator<Uint8Array> {
  const limit = () => setTimeout(() => body.destroy(silent()), silenceMs)
  let timer = limit()
  try {
    for await (const part of body) {
      clearTimeout(timer)
      yield part
      timer = limit()
    }
  } finally {
    clearTimeout(timer)
  }
}

interface UploadName {
  Bucket: string
  Key: string
  UploadId: string | undefined
}

/**
 * A file that is uploaded in parts. The same memory holds one part after the other. (The uploader of `@aws-sdk/lib-storage`
 * allocates each part twice.)
 */
class Parts {
  readonly #client: S3Client
  readonly #upload: UploadName
  readonly #sent: CompletedPart[] = []

  private constructor(client: S3Client, upload: UploadName) {
    this.#client = client
    this.#upload = upload
  }

  static async begin(client: S3Client, object: { Bucket: string; Key: string }): Promise<Parts> {
    const { UploadId } = await client.send(new CreateMultipartUploadCommand(object))
    return new Parts(client, { ...object, UploadId })
  }

  async send(Body: Uint8Array): Promise<void> {
    const PartNumber = this.#sent.length + 1
    const { ETag } = await this.#client.send(new UploadPartCommand({ ...this.#upload, PartNumber, Body }))
    this.#sent.push({ PartNumber, ETag })
  }

  async complete(last: Uint8Array): Promise<void> {
    await this.send(last)
    const MultipartUpload = { Parts: this.#sent }
    await this.#client.send(new CompleteMultipartUploadCommand({ ...this.#upload, MultipartUpload }))
  }

  async abort(): Promise<void> {
    await this.#client.send(new AbortMultipartUploadCommand(this.#upload))
  }
}
