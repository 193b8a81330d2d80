import { randomBytes } from 'node:crypto'
import type { Logger } from 'pino'
import { type InstanceId, newMediaFileId, newMediaId } from '../domain/ids.ts'
import { type ByteRange, type GoneReason, type Media, parseMimetype, RECEIVING_FAILURES } from '../domain/media.ts'
import { Refusal, type RefusalCode } from '../domain/refusal.ts'
import type { AddressGuard } from '../outbound/address-guard.ts'
import { StoreUnavailable } from '../store/errors.ts'
import type { FileName, FoundMedia, MediaRows } from '../store/media/media.ts'
import { DamagedFile, decryptFile, encryptFile, storedRange } from './chunks.ts'
import { Intake, refuseLarge } from './intake.ts'
import { refuseSlow } from './limits/pace.ts'
import { type Direction, type Transfer, Transfers } from './limits/transfers.ts'
import type { MediaStorage } from './storage/storage.ts'
import { nameOf, writeFile } from './write-file.ts'

const KEY_BYTES = 32
const RETRY_AFTER_SECONDS = 2

const WHY_GONE: Readonly<Record<GoneReason, string>> = {
  ...RECEIVING_FAILURES,
  expired: 'The file has expired.',
  erased: 'The file was erased on request.',
  not_fetched: 'The file could not be fetched from its URL.',
}

interface MediaOptions {
  rows: MediaRows
  storage: MediaStorage
  retentionMs: number
  quotaBytes: number
  bytesPerMinute: number
  guard: Pick<AddressGuard, 'checkLiteral'>
  logger: Logger
  now: () => number
  /** There are files to remove. */
  onDoomed: () => void
}

/** A file that a caller uploads. */
export interface Upload {
  bytes: AsyncIterable<Uint8Array>
  /** The declared number of bytes; null if it is unknown. */
  length: number | null
  /** The declared type, for a file whose content does not show its type. */
  type: string | null
  filename: string | null
  /** The refusal if the instance does not exist any more. */
  ifDeleted: RefusalCode
  /** Called when all bytes have arrived. Nothing is stored if it rejects. */
  checkAgain(): Promise<void>
}

/** A medium whose bytes are stored. */
interface OpenedMedia {
  media: Media
  /** Resolves once the first bytes are read. The caller must read to the end, or end the iteration. @throws Refusal */
  read(range: ByteRange): Promise<AsyncIterable<Uint8Array>>
}

type Reading = Exclude<Direction, 'upload'> | 'export'

const BUSY_ERASING = 'The files of a chat are being erased already. Wait for the Retry-After time.'

const UNLIMITED: Transfer = { count() {}, [Symbol.dispose]() {} }

type StoredFile = FoundMedia & { kind: 'stored' }

/** Stores, reads and erases files. Expected failures are thrown as `Refusal`. */
export class MediaLibrary {
  readonly #options: MediaOptions
  readonly #transfers: Transfers
  /** The instances for which the files of a chat are being erased. */
  readonly #erasing = new Set<InstanceId>()

  constructor(options: MediaOptions) {
    this.#options = options
    this.#transfers = new Transfers(options.bytesPerMinute)
  }

  /** Resolves when the file and its row survive a power failure. */
  async upload(
    instanceId: InstanceId,
    { bytes, length, type, filename, ifDeleted, checkAgain }: Upload,
  ): Promise<Media> {
    const { rows, quotaBytes, retentionMs, now } = this.#options
    refuseLarge(length ?? 0, type === null ? null : parseMimetype(type))
    using transfer = this.#transfers.begin('upload', instanceId, length ?? 0)
    const file = { instanceId, fileId: newMediaFileId(now()) }
    const key = randomBytes(KEY_BYTES)
    const begun = await rows.begin({ ...file, key, size: length ?? 0, quotaBytes })
    if (begun === 'no_instance') throw new Refusal(ifDeleted)
    if (begun !== 'begun') throw new Refusal('media_quota_exceeded')
    try {
      const intake = new Intake(type, count => transfer.count(count))
      await writeFile(rows, this.#options.storage, file, encryptFile(key, intake.pass(refuseSlow(bytes))))
      await checkAgain()
      const facts = { ...file, ...intake.finish(), id: newMediaId(now()), filename, quotaBytes }
      const outcome = await rows.finish({ ...facts, expiresAt: now() + retentionMs }, now())
      if (outcome.kind === 'full') throw new Refusal('media_quota_exceeded')
      if (outcome.kind === 'given_up') throw unavailable('The upload was interrupted: repeat it.')
      this.#options.onDoomed()
      return outcome.media
    } catch (error) {
      await this.#discard(file)
      throw this.#explained(error, file)
    }
  }

  /** If this fails, the file is given up later, because its row is no longer extended. */
  async #discard(file: FileName): Promise<void> {
    const { rows, storage, onDoomed, logger } = this.#options
    try {
      const outcome = await rows.discard(file)
      if (outcome === 'given_up') await storage.remove(nameOf(file))
      onDoomed()
    } catch (error) {
      logger.warn({ ...file, err: error }, 'media.discard_failed')
    }
  }

  /** Whether a file may be fetched from the literal address in `url`; `not_literal` if it contains a name. */
  checkUrl(url: URL): 'allowed' | 'blocked' | 'not_literal' {
    return this.#options.guard.checkLiteral(url)
  }

  get quotaBytes(): number {
    return this.#options.quotaBytes
  }

  /**
   * @param as `preview`: for the panel, with limits of its own. `export`: without limits, since its caller reads one file at a time
   * @throws Refusal if the instance has no such medium, or its bytes are gone
   */
  async open(instanceId: InstanceId, id: string, as: Reading = 'download'): Promise<OpenedMedia> {
    const found = await this.#find(instanceId, id)
    return { media: found.media, read: range => this.#read(found, range, as) }
  }

  async #find(instanceId: InstanceId, id: string): Promise<StoredFile> {
    const found = await this.#options.rows.find(instanceId, id)
    if (found === null) throw new Refusal('media_not_found')
    if (found.kind === 'pending')
      throw new Refusal('media_pending', undefined, { retryAfterSeconds: RETRY_AFTER_SECONDS })
    if (found.kind === 'gone') throw new Refusal('media_gone', WHY_GONE[found.reason])
    return found
  }

  /** @see MediaApi */
  beginErasure(instanceId: InstanceId): Disposable {
    if (this.#erasing.has(instanceId))
      throw new Refusal('too_many_transfers', BUSY_ERASING, { retryAfterSeconds: RETRY_AFTER_SECONDS })
    this.#erasing.add(instanceId)
    return { [Symbol.dispose]: () => this.#erasing.delete(instanceId) }
  }

  /** Resolves when the file cannot be read any more. Its bytes are removed soon after. @throws Refusal */
  async erase(instanceId: InstanceId, id: string): Promise<void> {
    const { rows, now, onDoomed } = this.#options
    const erased = await rows.erase(instanceId, id, now())
    if (erased === 'in_use') throw new Refusal('media_in_use')
    if (erased) return onDoomed()
    await this.#find(instanceId, id)
    throw unavailable('The file was uploaded again at this moment: repeat the call.')
  }

  async #read(found: StoredFile, range: ByteRange, as: Reading): Promise<AsyncIterable<Uint8Array>> {
    const { file } = found
    const length = range.to + 1 - range.from
    const transfer = as === 'export' ? UNLIMITED : this.#transfers.begin(as, file.instanceId, length)
    try {
      const plain = await this.#openFile(found, range)
      const first = await plain.next()
      return passOn(first, plain, transfer, error => this.#explained(error, file))
    } catch (error) {
      transfer[Symbol.dispose]()
      throw this.#explained(error, file)
    }
  }

  /** If the same content was uploaded again since the row was read, the medium has another file now. */
  async #openFile({ media, file, key }: StoredFile, range: ByteRange): Promise<AsyncGenerator<Uint8Array>> {
    const { storage, logger } = this.#options
    const stored = await storage.read(nameOf(file), storedRange(range, media.size))
    if (stored !== null) return decryptFile(key, stored, media.size, range)
    const found = await this.#find(file.instanceId, media.id)
    if (found.file.fileId !== file.fileId) return this.#openFile(found, range)
    logger.error({ ...file, mediaId: media.id }, 'media.file_missing')
    throw new Refusal('media_gone', 'The file is missing in the storage: upload it again.')
  }

  #explained(error: unknown, file: FileName): unknown {
    if (error instanceof Refusal || error instanceof StoreUnavailable) return error
    this.#options.logger.error({ ...file, err: error }, 'media.storage_failed')
    if (error instanceof DamagedFile)
      return new Refusal('media_gone', 'The file was damaged in the storage: upload it again.')
    return unavailable('The storage of files is not available right now.')
  }
}

/** The first piece and the rest. Unlike a generator, it also ends the transfer if nothing was ever read from it. */
function passOn(
  first: IteratorResult<Uint8Array, void>,
  rest: AsyncGenerator<Uint8Array, void>,
  transfer: Transfer,
  explain: (error: unknown) => unknown,
): AsyncIterableIterator<Uint8Array> {
  let read: IteratorResult<Uint8Array, void> | null = first
  let ended = false
  const end = async () => {
    if (!ended) transfer[Symbol.dispose]()
    ended = true
    await rest.return()
    return { done: true as const, value: undefined }
  }
  return {
    [Symbol.asyncIterator]() {
      return this
    },
    async next() {
      try {
        const next = read ?? (await rest.next())
        read = null
        if (next.done) return await end()
        transfer.count(next.value.length)
        return next
      } catch (error) {
        await end()
        throw explain(error)
      }
    },
    return: end,
  }
}

function unavailable(message: string): Refusal {
  return new Refusal('service_unavailable', message, { retryAfterSeconds: RETRY_AFTER_SECONDS })
}
