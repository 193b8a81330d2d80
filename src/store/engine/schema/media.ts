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

/** One row per file in the storage, from before its first byte until after its last. */
export interface MediaFilesTable {
  instance_id: string
  id: string
  state: MediaFileState
  /** Encrypted under the instance's key. */
  sealed_key: Uint8Array
  /** What it counts for the quota. While it is written: what it may become, if known. */
  size: number
  /** On the database's clock. When a file that is still `writing` is given up, or when to try to remove it. Null: `stored`. */
  due_at: number | null
}

export type MediaFileState = 'writing' | 'stored' | 'removing'

/** The sum of the sizes of an instance's files. */
export interface MediaUsageTable {
  instance_id: string
  bytes: number
}
