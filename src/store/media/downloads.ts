import type { InstanceId, MessageId } from '../../domain/ids.ts'
import type { FileFacts, FileSource, ReceivingFailure } from '../../domain/media.ts'
import type { Lease } from '../leases/leases.ts'
import type { FileName } from './media.ts'

/** The longest pause before a file is fetched again. */
export const LONGEST_PAUSE_MS = 3_600_000
/** The longest pause after the phone was asked to upload the file again. */
export const LONGEST_REQUEST_PAUSE_MS = 12 * 3_600_000

/** A received file that is to be fetched from WhatsApp. */
export interface Download {
  mediaId: string
  messageId: MessageId
  /** The chat of the message. */
  chat: string
  /** When the message was recorded. */
  createdAt: number
  /** Failed attempts to fetch it. */
  attempts: number
  /** How often the linked phone was asked to upload it again. */
  requests: number
  facts: FileFacts
  source: FileSource
}

/** A file that is complete in the storage. */
export interface FetchedFile extends FileName {
  mimetype: string
  size: number
  sha256: Uint8Array
  expiresAt: number
  quotaBytes: number
}

/**
 * `full`: the bytes would exceed the quota. `busy`: they fit as soon as other files are complete or removed. `given_up`: the file is
 * not needed any more, or writing it took too long.
 */
export type ReceiveOutcome = 'stored' | 'full' | 'busy' | 'given_up'

/** When a download is tried again, and the new values of its row. */
export type NextTry = Pick<Download, 'attempts' | 'requests' | 'source' | 'facts' | 'chat'> & { dueAt: number }

export interface DueDownloads {
  due: Download[]
  /** The media of due rows that are damaged and cannot be decrypted. */
  unreadable: string[]
  /** When the next download after these is due. Null: there is none. */
  nextAt: number | null
}

/**
 * The received files that are still to be fetched. `Events.storeIncoming` adds them in the commit of their message. Only the
 * owner of the instance fetches them, so nothing is claimed in the rows:
 *
 * | killed … | leaves |
 * |---|---|
 * | while a file is fetched and written | its download, and a file that is `writing` (`MediaRows`) |
 * | after `recordFetched` or `recordFailed` | the file or its failure, with the event; the download is gone |
 */
export interface Downloads {
  /**
   * Up to `limit` downloads that are due, the most overdue first. A download that is due later than the longest pause was recorded by
   * a clock that was ahead, and is due at once.
   */
  listDue(instanceId: InstanceId, now: number, limit: number): Promise<DueDownloads>
  /**
   * Gives the medium its bytes, which are in the storage under a file that `MediaRows.begin` announced, and records
   * `media.ready`.
   */
  recordFetched(lease: Lease, mediaId: string, file: FetchedFile, now: number): Promise<ReceiveOutcome>
  /** The attempt failed and will be repeated. Does nothing if the medium was erased. */
  recordRetry(lease: Lease, mediaId: string, next: NextTry): Promise<void>
  /** Gives the download up and records `media.failed`. Does nothing if the medium was erased. */
  recordFailed(lease: Lease, mediaId: string, failure: ReceivingFailure, now: number): Promise<void>
}
