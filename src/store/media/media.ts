import type { InstanceId } from '../../domain/ids.ts'
import type { GoneReason, Media } from '../../domain/media.ts'
import type { Page, PageRequest } from '../engine/page.ts'

/** A file in the storage. */
export interface FileName {
  instanceId: InstanceId
  fileId: string
}

export interface NewFile extends FileName {
  /** 32 bytes. Encrypts the file; stored encrypted under the instance's key. */
  key: Uint8Array
  /** The declared size, 0 if unknown. It is reserved from the quota if it fits. */
  size: number
  quotaBytes: number
}

export interface FinishedFile extends FileName {
  /** The ID of a new medium. */
  id: string
  mimetype: string
  size: number
  sha256: Uint8Array
  /** Null keeps the name of an earlier upload. */
  filename: string | null
  expiresAt: number
  quotaBytes: number
}

/** `pending`: the file is still being fetched from WhatsApp or a URL. `gone`: there are no bytes any more. */
export type FoundMedia =
  | { kind: 'pending' }
  | { kind: 'stored'; media: Media; file: FileName; key: Uint8Array }
  | { kind: 'gone'; reason: GoneReason }

/** A file as people see it in a list. */
export interface ListedMedia {
  id: string
  /** Somebody sent it to the instance. Otherwise a caller uploaded it or gave its URL. */
  isReceived: boolean
  state: 'pending' | 'ready' | GoneReason
  mimetype: string
  size: number
  filename: string | null
  createdAt: number
  expiresAt: number
}

export type FinishOutcome =
  | { kind: 'stored'; media: Media }
  /** The bytes would exceed the quota. */
  | { kind: 'full' }
  /** Writing took too long, or the instance was deleted, and the file is being removed. */
  | { kind: 'given_up' }

/** What the database knows about the storage. */
export interface FolderRecord {
  /** The ID of the folder. Null if none is recorded, or the storage is a bucket. */
  id: string | null
  /** Whether the storage holds a file, or will get one. */
  hasFiles: boolean
  /** Whether it holds a file that can be read. */
  hasStored: boolean
  /** Whether it may hold the bytes of a file, including one that is being written or removed. */
  hasBytes: boolean
  /** Whether other nodes run. */
  hasNodes: boolean
}

/**
 * `given_up`: the row is being removed or is gone already, because another node gave the file up. That node may have removed the
 * bytes before the last of them arrived, so the caller must remove them.
 */
export type DiscardOutcome = 'doomed' | 'stored' | 'given_up'

/**
 * The descriptions of media, and which files the storage holds. A file has a row from before its first byte is written
 * until after all its bytes are removed, so every file that a crash leaves has a row:
 *
 * | killed … | leaves |
 * |---|---|
 * | before `begin` | nothing |
 * | after `begin`, before `finish` | a file that is `writing`: `claimDoomed` returns it when it is due |
 * | after `finish` | the medium |
 * | after bytes were declared gone, before `forget` | a file that is `removing`: `claimDoomed` returns it |
 */
export interface MediaRows {
  /**
   * Announces a file. `full`: it would exceed the quota, and callers have uploaded no file of exactly this size. `busy`: the same,
   * but it fits as soon as other files are complete or removed.
   */
  begin(file: NewFile): Promise<'begun' | 'full' | 'busy' | 'no_instance'>
  /** Reports that the file is still being written. False if it was given up. One call a minute is enough. */
  extend(file: FileName): Promise<boolean>
  /**
   * The file is complete in the storage. If the instance has the same content already, that medium gets this file, keeps its ID
   * and expires later.
   */
  finish(file: FinishedFile, now: number): Promise<FinishOutcome>
  /** Marks an unneeded file for immediate removal, unless it is `stored` because its `finish` was committed. */
  discard(file: FileName): Promise<DiscardOutcome>
  /** Null if the instance has no such medium. */
  find(instanceId: InstanceId, id: string): Promise<FoundMedia | null>
  /** Newest first. */
  list(instanceId: InstanceId, page: PageRequest): Promise<Page<ListedMedia>>
  /** Null if the instance has no such medium. */
  findListed(instanceId: InstanceId, id: string): Promise<ListedMedia | null>
  /** The bytes that the instance's files take. */
  readUsage(instanceId: InstanceId): Promise<number>
  /** Marks the bytes for removal. `in_use`: a queued message contains them. False if there are none. */
  erase(instanceId: InstanceId, id: string, now: number): Promise<boolean | 'in_use'>
  /**
   * Marks for removal the bytes of a limited number of media that have expired or whose instance is deleted, except
   * those that a queued message contains. Deletes the rows of media whose bytes were gone before `goneBefore`. @returns
   * how many rows it found
   */
  expire(now: number, goneBefore: number): Promise<number>
  /**
   * Files to remove: unneeded files, and files whose writer is gone. Returns each again after a minute, until `forget`.
   */
  claimDoomed(limit: number): Promise<FileName[]>
  findFolder(): Promise<FolderRecord>
  /**
   * Records the ID of the folder. A recorded one is replaced only if it is still `former`, there is no file and no other node
   * runs. @returns the recorded ID
   */
  recordFolder(id: string, former: string | null): Promise<string>
  /** Deletes the row of a file that is not in the storage any more. */
  forget(file: FileName): Promise<void>
}
