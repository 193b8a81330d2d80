import type { InstanceId } from '../../domain/ids.ts'
import type { GoneReason } from '../../domain/media.ts'
import type { FetchedFile, ReceiveOutcome } from './downloads.ts'

/** The longest pause before an attempt. A fetch that is due later was recorded by a clock that was ahead, and is due at once. */
export const LONGEST_FETCH_PAUSE_MS = 20_000

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

/** The instances and hosts that already have as many running fetches as allowed. No fetch of theirs may be claimed. */
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
  /** Claims the most overdue fetch for 8 s. Null if none is due. Drops fetches without a queued message. */
  claim(full: FullPlaces, now: number): Promise<Fetch | null>
  /** When the next fetch that may be claimed is due, in milliseconds from now; null if there is none. */
  nextInMs(full: FullPlaces): Promise<number | null>
  /** Claims a running fetch for another 8 s. False if the file is not needed any more. */
  extend(fetch: Fetch): Promise<boolean>
  /**
   * Gives the medium its bytes, which are in the storage under a file that `MediaRows.begin` announced, and decides how
   * the message shows them. `given_up` also if the medium already has a file.
   */
  recordFetched(fetch: Fetch, file: FetchedFile): Promise<ReceiveOutcome>
  /** The attempt failed and will be repeated. @param pauseMs at most `LONGEST_FETCH_PAUSE_MS` */
  recordRetry(fetch: Fetch, attempts: number, pauseMs: number): Promise<void>
  /** Gives the fetch up. Its message fails when it is to be sent. */
  recordFailed(fetch: Fetch, failure: FetchFailure, now: number): Promise<void>
}
