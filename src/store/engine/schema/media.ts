import type { Generated } from 'kysely'
import type { GoneReason } from '../../../domain/media.ts'

/** The facts about a file. The row outlives the bytes, so that callers learn why they are gone. */
export interface MediaTable {
  instance_id: string
  id: string
  /**
   * Null while the file is being fetched and once the bytes are gone. The next two columns are null once the bytes are
   * gone.
   */
  file_id: string | null
  sha256: Uint8Array | null
  filename: string | null
  size: number
  mimetype: string
  created_at: number
  expires_at: number
  gone_at: number | null
  gone_reason: GoneReason | null
  /**
   * 1 if it was sent to the instance, 2 if it comes from the URL of a message. Without a file and `gone_at` it is still being
   * fetched.
   */
  received: Generated<number>
}

/** Received files that are to be fetched from WhatsApp. Times are by the owner's clock. */
export interface MediaDownloadsTable {
  instance_id: string
  media_id: string
  message_id: string
  created_at: number
  due_at: number
  /** Failed attempts to fetch it. */
  attempts: number
  /** How often the linked phone was asked to upload it again. */
  requests: number
  /** A JSON object (`FileSource` and the message's `FileFacts`), encrypted under the instance's key. */
  sealed_source: Uint8Array
}

/** Files of queued messages that are to be fetched from a URL. */
export interface MediaFetchesTable {
  instance_id: string
  media_id: string
  url: string
  /** The host and port of the URL. */
  host: string
  /** Failed attempts to fetch it. */
  attempts: number
  /** On the database's clock. While it is being fetched: when another node may claim it, unless it is extended. */
  due_at: number
}

/** One row per file in the storage. It is created before the first byte is written and deleted after the bytes are removed. */
export interface MediaFilesTable {
  instance_id: string
  id: string
  state: MediaFileState
  /** Encrypted under the instance's key. */
  sealed_key: Uint8Array
  /** Bytes that count towards the quota. While the file is written: its declared size, if known. */
  size: number
  /**
   * On the database's clock. `writing`: when the upload is given up unless it is extended. `removing`: when to try to remove the
   * file. Null: `stored`.
   */
  due_at: number | null
}

export type MediaFileState = 'writing' | 'stored' | 'removing'

/** The sum of the sizes of an instance's files. */
export interface MediaUsageTable {
  instance_id: string
  bytes: number
}
