import type { InstanceId } from '../../domain/ids.ts'
import type { GoneReason } from '../../domain/media.ts'
import type { FetchedFile } from './downloads.ts'

/** A file of a queued message that is to be fetched from its URL. */
export interface Fetch {
  instanceId: InstanceId
  mediaId: string
  url: string
  /** The host and port of the URL. */
  host: string
  /** Failed attempts to fetch it. */
  attempts: number
}

export type FetchFailure = Extract<GoneReason, 'not_fetched' | 'media_too_large' | 'media_quota_exceeded'>

/** The instances and hosts without a free place. Their files may not be claimed now. */
export interface FullPlaces {
  instances: readonly InstanceId[]
  hosts: readonly { instanceId: InstanceId; host: string }[]
}

/**
 * The files that are still to be fetched from a URL. `Messages.accept` adds them in the commit of their message. Any node fetches
 * them, connected or not:
 *
 * | killed … | leaves |
 * |---|---|
 * | after `claim`, while the file is fetched and written | the fetch, which can be claimed again after 8 s, and a file that is `writing` (`MediaRows`) |
 * | after `recordFetched` or `recordFailed` | the file, or why there is none; the fetch is gone |
 */
export interface Fetches {
  /** The most overdue fetch; null if none is due. It is due again after 8 s, unless it is extended. Drops fetches without a queued message. */
  claim(full: FullPlaces, now: number): Promise<Fetch | null>
  /** When the next one with a free place is due, in milliseconds from now; null if there is none. */
  nextInMs(full: FullPlaces): Promise<number | null>
  /** It is still being fetched. False if it is not needed any more. */
  extend(fetch: Fetch): Promise<boolean>
  /**
   * The bytes are in the storage, under a file that `MediaRows.begin` announced. Makes them those of the medium, and decides how
   * the message shows them. `given_up`: the medium has its file already or was erased, or this file took too long.
   */
  recordFetched(fetch: Fetch, file: FetchedFile): Promise<'stored' | 'full' | 'given_up'>
  /** It did not work and is tried again. */
  recordRetry(fetch: Fetch, attempts: number, pauseMs: number): Promise<void>
  /** It is given up. Its message fails when it is to be sent. */
  recordFailed(fetch: Fetch, failure: FetchFailure, now: number): Promise<void>
}
