import { Readable } from 'node:stream'
import {
  AbortMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  ListMultipartUploadsCommand,
  NoSuchKey,
  S3Client,
} from '@aws-sdk/client-s3'
import { Upload } from '@aws-sdk/lib-storage'
import type { ByteRange, MediaPlace } from '../../domain/media.ts'
import type { MediaStorage } from './storage.ts'

/** The smallest part that S3 allows. A part being sent and the next one are all that an upload holds in memory. */
const PART_BYTES = 5 * 1_048_576
const CONNECT_TIMEOUT_MS = 5_000
/** Without a byte. */
const SILENCE_TIMEOUT_MS = 30_000

/**
 * Files in an S3-compatible bucket. An object exists only when it is complete. The credentials come from where the AWS tools
 * look for them: `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, a profile, or the machine's role.
 */
export class BucketStorage implements MediaStorage {
  readonly #client: S3Client
  readonly #bucket: string
  readonly #prefix: string

  constructor({ bucket, prefix, endpoint, region }: MediaPlace & { kind: 'bucket' }) {
    this.#bucket = bucket
    this.#prefix = prefix
    this.#client = new S3Client({
      ...(region !== null && { region }),
      // Other services rarely support a host name for each bucket, and not all of them Amazon's newest checksums.
      ...(endpoint !== null && { endpoint, forcePathStyle: true }),
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      requestHandler: { connectionTimeout: CONNECT_TIMEOUT_MS, socketTimeout: SILENCE_TIMEOUT_MS },
    })
  }

  async write(name: string, bytes: AsyncIterable<Uint8Array>): Promise<void> {
    const upload = new Upload({
      client: this.#client,
      params: { ...this.#object(name), Body: Readable.from(bytes, { objectMode: false }) },
      partSize: PART_BYTES,
      queueSize: 1,
    })
    await upload.done()
  }

  async read(name: string, { from, to }: ByteRange): Promise<AsyncIterable<Uint8Array> | null> {
    const command = new GetObjectCommand({ ...this.#object(name), Range: `bytes=${from}-${to}` })
    try {
      const { Body } = await this.#client.send(command)
      return Body as Readable
    } catch (error) {
      if (error instanceof NoSuchKey) return null
      throw error
    }
  }

  async remove(name: string): Promise<void> {
    const { Key } = this.#object(name)
    const { Uploads = [] } = await this.#client.send(
      new ListMultipartUploadsCommand({ Bucket: this.#bucket, Prefix: Key }),
    )
    for (const { UploadId } of Uploads)
      await this.#client.send(new AbortMultipartUploadCommand({ ...this.#object(name), UploadId }))
    await this.#client.send(new DeleteObjectCommand(this.#object(name)))
  }

  async close(): Promise<void> {
    this.#client.destroy()
  }

  #object(name: string): { Bucket: string; Key: string } {
    return { Bucket: this.#bucket, Key: this.#prefix + name }
  }
}
