import { randomBytes } from 'node:crypto'
import type { Logger } from 'pino'
import { type InstanceId, newMediaFileId } from '../domain/ids.ts'
import type { MediaTerms } from '../domain/media.ts'
import type { FetchedFile, ReceiveOutcome } from '../store/media/downloads.ts'
import type { FileName, MediaRows } from '../store/media/media.ts'
import { encryptFile } from './chunks.ts'
import { Intake } from './intake.ts'
import type { MediaStorage } from './storage/storage.ts'
import { nameOf, writeFile } from './write-file.ts'

const KEY_BYTES = 32

/** A file whose bytes are arriving. */
interface IncomingBytes {
  /** The declared type. */
  mimetype: string | null
  /** The declared size; 0 if none is declared. */
  size: number
  /** Default: what its type allows. */
  maxBytes?: number
}

/** Stores files that were sent to an instance, or come from a URL, in any thread and without the limits of callers. */
export class FileReceiver {
  readonly terms: MediaTerms
  readonly #open: () => Promise<MediaStorage>
  readonly #rows: Pick<MediaRows, 'begin' | 'extend' | 'discard' | 'forget'>
  readonly #logger: Logger

  constructor(
    open: () => Promise<MediaStorage>,
    rows: Pick<MediaRows, 'begin' | 'extend' | 'discard' | 'forget'>,
    terms: MediaTerms,
    logger: Logger,
  ) {
    this.#open = open
    this.#rows = rows
    this.terms = terms
    this.#logger = logger
  }

  /**
   * Writes the bytes, then commits them. A kill in between leaves a file that is given up.
   * @throws Refusal if the file is too large or empty; what `bytes` throws; and what the storage or the store throws
   */
  async receive(
    instanceId: InstanceId,
    { mimetype, size, maxBytes }: IncomingBytes,
    bytes: AsyncIterable<Uint8Array>,
    now: number,
    commit: (file: FetchedFile) => Promise<ReceiveOutcome>,
  ): Promise<ReceiveOutcome> {
    const { quotaBytes, retentionMs } = this.terms
    const file = { instanceId, fileId: newMediaFileId(now) }
    const key = randomBytes(KEY_BYTES)
    const storage = await this.#open()
    const begun = await this.#rows.begin({ ...file, key, size, quotaBytes })
    if (begun !== 'begun') return begun === 'no_instance' ? 'given_up' : begun
    const source = new Source(bytes)
    try {
      const intake = new Intake(mimetype, () => undefined, maxBytes)
      await writeFile(this.#rows, storage, file, encryptFile(key, intake.pass(source)))
      const outcome = await commit({ ...file, ...intake.finish(), expiresAt: now + retentionMs, quotaBytes })
      if (outcome !== 'stored') await this.#discard(storage, file)
      return outcome
    } catch (error) {
      await this.#discard(storage, file)
      throw source.error ?? error
    }
  }

  /**
   * Removes the file immediately, because its reserved size counts against the quota: files that cannot be fetched
   * would soon fill it. If the removal fails, the cleaning removes the file later. A file that another node gave up is
   * removed once more: its last bytes may have arrived after that node removed it.
   */
  async #discard(storage: MediaStorage, file: FileName): Promise<void> {
    try {
      if ((await this.#rows.discard(file)) === 'stored') return
      await storage.remove(nameOf(file))
      await this.#rows.forget(file)
    } catch (error) {
      this.#logger.warn({ ...file, err: error }, 'media.discard_failed')
    }
  }
}

/** Remembers why the bytes ended: a storage may wrap the error. */
class Source implements AsyncIterable<Uint8Array> {
  readonly #bytes: AsyncIterable<Uint8Array>
  error: unknown

  constructor(bytes: AsyncIterable<Uint8Array>) {
    this.#bytes = bytes
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    try {
      yield* this.#bytes
    } catch (error) {
      this.error = error
      throw error
    }
  }
}
