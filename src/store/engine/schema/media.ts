import type { GoneReason } from '../../../domain/media.ts'

/** The facts about a file. The row outlives the bytes, so that callers learn why they are gone. */
export interface MediaTable {
  instance_id: string
  id: string
  /** Null once the bytes are gone, like the next two. */
  file_id: string | null
  sha256: Uint8Array | null
  filename: string | null
  size: number
  mimetype: string
  created_at: number
  expires_at: number
  gone_at: number | null
  gone_reason: GoneReason | null
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
