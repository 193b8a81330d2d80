import type { Logger } from 'pino'
import type { InstanceId } from '../../domain/ids.ts'
import { type FileSource, type MediaTerms, maxBytesAs, type ReceivingFailure } from '../../domain/media.ts'
import { Refusal } from '../../domain/refusal.ts'
import { backoffMs } from '../../kit/backoff.ts'
import type { Turns } from '../../kit/turns.ts'
import { LeaseLost } from '../../store/errors.ts'
import type { Lease } from '../../store/leases/leases.ts'
import {
  type Download,
  type FetchedFile,
  LONGEST_PAUSE_MS,
  LONGEST_REQUEST_PAUSE_MS,
  type NextTry,
  type ReceiveOutcome,
} from '../../store/media/downloads.ts'
import type { Store } from '../../store/store.ts'
import { untilStored } from '../../store/until-stored.ts'
import { type Link, LinkClosed } from '../baileys/link.ts'
import { AlteredFile } from '../baileys/media/cipher.ts'
import { DownloadFailed } from '../baileys/media/download.ts'
import { RequestPlaces } from './request-places.ts'

/** Concurrent fetches of one instance. */
const FETCHES_AT_ONCE = 3
const POLL_EVERY_MS = 30_000
/** The shortest pause before the timer reads the store again. */
const LEAST_PAUSE_MS = 20
/** The pause after a failed read of the store. */
const READ_AGAIN_AFTER_MS = 1_000
/** The file is given up after this time. */
const GIVE_UP_AFTER_MS = 3 * 86_400_000
const FIRST_PAUSE_MS = 2_000
/** Fetches of a file whose bytes are wrong, before and after the phone has uploaded it again. */
const ALTERED_FETCHES = 2
const FIRST_REQUEST_PAUSE_MS = 5 * 60_000
const MAX_REQUESTS = 20

/** Writes received files into the storage. */
export interface Receiver {
  readonly terms: MediaTerms
  /** Writes the bytes, then calls `commit`. */
  receive(
    instanceId: InstanceId,
    file: { mimetype: string; size: number; maxBytes: number },
    bytes: AsyncIterable<Uint8Array>,
    now: number,
    commit: (file: FetchedFile) => Promise<ReceiveOutcome>,
  ): Promise<ReceiveOutcome>
}

interface DownloadsOptions {
  lease: Lease
  store: Pick<Store, 'downloads'>
  /** Null: this node has no storage. */
  receiver: Receiver | null
  /** Shared by the connections of a thread. */
  turns: Turns
  logger: Logger
  now: () => number
  /** Aborted when the connection stops. */
  signal: AbortSignal
  onFailed(error: unknown): void
}

type DownloadLink = Pick<Link, 'closed'> & { files: Pick<Link['files'], 'download' | 'requestReUpload'> }

type FetchOutcome =
  | { kind: 'stored' }
  /** The link has closed. The file is fetched over the next link. */
  | { kind: 'closed' }
  | { kind: 'failed'; failure: ReceivingFailure }
  | { kind: 'later' | 'gone' | 'maybe_gone' | 'altered'; why: string }

/**
 * Fetches from WhatsApp the files that were sent to an instance. Each download is a row. Only the owner of the instance
 * fetches its files, so a claim is in memory only, and a kill leaves the row as it was.
 */
export class Downloads {
  readonly #options: DownloadsOptions
  /** The steps in progress, by the ID of the medium. */
  readonly #active = new Map<string, { step: 'fetch' | 'request'; ended: Promise<void> }>()
  readonly #places = new RequestPlaces()
  #link: DownloadLink | null = null
  #timer: NodeJS.Timeout | undefined
  #isReading = false
  #isStale = false

  constructor(options: DownloadsOptions) {
    this.#options = options
  }

  /** There may be files to fetch. */
  wake(): void {
    this.#isStale = true
    if (!this.#isReading) void this.#fill()
  }

  attach(link: DownloadLink): void {
    this.#link = link
    this.wake()
  }

  /** Starts no more downloads. Those in progress end when the link has closed. */
  detach(): void {
    this.#link = null
  }

  async stop(): Promise<void> {
    clearTimeout(this.#timer)
    this.detach()
    await Promise.allSettled(Array.from(this.#active.values(), ({ ended }) => ended))
  }

  /** Starts the downloads that are due, and sets the timer for the next read. */
  async #fill(): Promise<void> {
    if (this.#options.receiver === null) return
    this.#isReading = true
    let pauseMs = POLL_EVERY_MS
    try {
      while (this.#isStale && !this.#options.signal.aborted) {
        this.#isStale = false
        pauseMs = await this.#startDue()
      }
    } catch (error) {
      this.#options.onFailed(error)
      pauseMs = READ_AGAIN_AFTER_MS
    }
    this.#isReading = false
    clearTimeout(this.#timer)
    if (!this.#options.signal.aborted) this.#timer = setTimeout(() => this.wake(), pauseMs)
  }

  /** @returns the longest time until the next read, in milliseconds */
  async #startDue(): Promise<number> {
    const { lease, store, logger, now } = this.#options
    const limit = this.#active.size + FETCHES_AT_ONCE
    const { due, unreadable, nextAt } = await store.downloads.listDue(lease.instanceId, now(), limit)
    for (const mediaId of unreadable) {
      logger.error({ instanceId: lease.instanceId, mediaId }, 'media.download_unreadable')
      await store.downloads.recordFailed(lease, mediaId, 'media_unavailable', now())
      this.#isStale = true
    }
    for (const download of due) {
      if (this.#active.has(download.mediaId)) continue
      const link = this.#link
      if (link !== null && !link.closed.aborted) {
        if (this.#count('fetch') >= FETCHES_AT_ONCE) break
        this.#begin(download, link)
      } else if (isOver(download, now())) await this.#fail(download, 'media_unavailable')
    }
    // Without a link nothing can start. A new link or the end of a fetch causes the next read.
    if (this.#link === null || nextAt === null || this.#count('fetch') >= FETCHES_AT_ONCE) return POLL_EVERY_MS
    return Math.min(POLL_EVERY_MS, Math.max(LEAST_PAUSE_MS, nextAt - now()))
  }

  #begin(download: Download, link: DownloadLink): void {
    const ended = this.#run(download, link)
      .catch(error => this.#options.onFailed(error))
      .finally(() => {
        this.#active.delete(download.mediaId)
        this.wake()
      })
    this.#active.set(download.mediaId, { step: 'fetch', ended })
  }

  #count(step: 'fetch' | 'request'): number {
    let count = 0
    for (const each of this.#active.values()) if (each.step === step) count += 1
    return count
  }

  async #run(download: Download, link: DownloadLink): Promise<void> {
    const { turns } = this.#options
    if (!(await turns.take(link.closed))) return
    const startedAt = performance.now()
    let outcome: FetchOutcome
    try {
      outcome = await this.#fetch(download, link)
    } finally {
      turns.end()
    }
    const durationMs = Math.round(performance.now() - startedAt)
    const why = 'why' in outcome ? { why: outcome.why } : {}
    const { mediaId, attempts } = download
    const { logger, lease } = this.#options
    logger.info(
      { instanceId: lease.instanceId, mediaId, outcome: outcome.kind, ...why, attempts, durationMs },
      'media.fetched',
    )
    if (outcome.kind === 'failed') await this.#fail(download, outcome.failure)
    else if (outcome.kind === 'later') await this.#fetchLater(download)
    else if (outcome.kind === 'gone') await this.#requestReUpload(download, link, 'media_unavailable')
    else if (outcome.kind === 'maybe_gone') await this.#requestReUpload(download, link, null)
    else if (outcome.kind === 'altered') await this.#afterAltered(download, link)
  }

  async #fetch({ mediaId, facts, source }: Download, link: DownloadLink): Promise<FetchOutcome> {
    const { receiver, lease, store, now, signal } = this.#options
    try {
      const outcome = await receiver!.receive(
        lease.instanceId,
        { mimetype: facts.mimetype, size: facts.size, maxBytes: maxBytesAs(source.form) },
        link.files.download(source),
        now(),
        file => untilStored(() => store.downloads.recordFetched(lease, mediaId, file, now()), signal),
      )
      if (outcome === 'full') return { kind: 'failed', failure: 'media_quota_exceeded' }
      if (outcome === 'busy') return { kind: 'later', why: 'Unfinished files are taking up the space.' }
      return outcome === 'stored' ? { kind: 'stored' } : { kind: 'later', why: 'The file was given up.' }
    } catch (error) {
      return outcomeOf(error, link)
    }
  }

  async #fetchLater(download: Download): Promise<void> {
    const attempts = download.attempts + 1
    await this.#retryAfter(backoffMs(download.attempts, FIRST_PAUSE_MS, LONGEST_PAUSE_MS), { ...download, attempts })
  }

  /** The bytes may have been altered on their way, or the media host has wrong ones. */
  async #afterAltered(download: Download, link: DownloadLink): Promise<void> {
    if (download.attempts + 1 < ALTERED_FETCHES) return this.#fetchLater(download)
    if (download.source.isReUploaded) return this.#fail(download, 'media_damaged')
    await this.#requestReUpload(download, link, 'media_damaged')
  }

  /** @param failure recorded if the phone refuses; null: the file is then tried again, because a media host may have it */
  async #requestReUpload(download: Download, link: DownloadLink, failure: ReceivingFailure | null): Promise<void> {
    const active = this.#active.get(download.mediaId)
    if (download.requests >= MAX_REQUESTS) return this.#fail(download, failure ?? 'media_unavailable')
    const place = this.#places.take(download.chat)
    if (place === null || active === undefined) return this.#fetchLater(download)
    // The download no longer counts as a fetch.
    active.step = 'request'
    this.wake()
    const answer = await link.files.requestReUpload(download.source).finally(() => place.free())
    if (link.closed.aborted) return
    if (answer.kind === 'refused' && failure !== null) return this.#fail(download, failure)
    const requests = download.requests + 1
    const pauseMs = backoffMs(download.requests, FIRST_REQUEST_PAUSE_MS, LONGEST_REQUEST_PAUSE_MS)
    if (answer.kind !== 'uploaded') return this.#retryAfter(pauseMs, { ...download, requests })
    const source: FileSource = { ...download.source, directPath: answer.directPath, isReUploaded: true }
    // A phone that keeps uploading the wrong bytes is asked less and less often.
    const again = { ...download, requests, attempts: 0, source }
    await this.#retryAfter(download.requests === 0 ? 0 : pauseMs, again)
  }

  async #retryAfter(pauseMs: number, download: Download): Promise<void> {
    const { lease, store, now, signal } = this.#options
    const dueAt = now() + pauseMs
    if (isOver(download, dueAt)) return this.#fail(download, 'media_unavailable')
    const { attempts, requests, source, facts, chat, mediaId } = download
    const next: NextTry = { attempts, requests, source, facts, chat, dueAt }
    await untilStored(() => store.downloads.recordRetry(lease, mediaId, next), signal)
  }

  async #fail({ mediaId }: Download, failure: ReceivingFailure): Promise<void> {
    const { lease, store, now, signal, logger } = this.#options
    await untilStored(() => store.downloads.recordFailed(lease, mediaId, failure, now()), signal)
    logger.warn({ instanceId: lease.instanceId, mediaId, failure }, 'media.fetch_given_up')
  }
}

function isOver({ createdAt }: Download, at: number): boolean {
  return at - createdAt > GIVE_UP_AFTER_MS
}

/** @throws LeaseLost */
function outcomeOf(error: unknown, { closed }: Pick<DownloadLink, 'closed'>): FetchOutcome {
  if (error instanceof LeaseLost) throw error
  if (error instanceof LinkClosed || closed.aborted) return { kind: 'closed' }
  const why = String(error)
  if (error instanceof AlteredFile) return { kind: 'altered', why }
  if (error instanceof DownloadFailed) {
    if (error.kind === 'too_large') return { kind: 'failed', failure: 'media_too_large' }
    return { kind: error.kind === 'unavailable' ? 'later' : error.kind, why }
  }
  if (error instanceof Refusal)
    return { kind: 'failed', failure: error.code === 'media_too_large' ? 'media_too_large' : 'media_damaged' }
  return { kind: 'later', why }
}
