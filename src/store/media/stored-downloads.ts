import type { Selectable } from 'kysely'
import { mediaBody } from '../../domain/events/event.ts'
import { type InstanceId, newEventId } from '../../domain/ids.ts'
import type { FileFacts, ReceivingFailure } from '../../domain/media.ts'
import { CLOCK_TOLERANCE_MS } from '../../kit/clock.ts'
import type { Transaction } from '../engine/backend.ts'
import type { Core } from '../engine/core.ts'
import { fencedOneByOne } from '../engine/operation.ts'
import type { MediaDownloadsTable } from '../engine/schema/media.ts'
import type { EventRecorder } from '../events/event-recorder.ts'
import type { Lease } from '../leases/leases.ts'
import { selectIncoming, toIncoming } from '../messages/incoming.ts'
import {
  type Download,
  type Downloads,
  type DueDownloads,
  type FetchedFile,
  LONGEST_PAUSE_MS,
  LONGEST_REQUEST_PAUSE_MS,
  type NextTry,
  type ReceiveOutcome,
} from './downloads.ts'
import { FileRows } from './file-rows.ts'
import { openSource, sealSource } from './received-files.ts'

type DownloadRow = Selectable<MediaDownloadsTable>

interface OneDownload {
  lease: Lease
  mediaId: string
}

interface Outcome<O> {
  outcome: O
  recorded: boolean
  deliverable: boolean
}

export class StoredDownloads implements Downloads {
  readonly #core: Core
  readonly #recorder: EventRecorder
  readonly #rows: FileRows
  readonly #fetched
  readonly #retry
  readonly #failed

  constructor(core: Core, recorder: EventRecorder) {
    this.#core = core
    this.#recorder = recorder
    this.#rows = new FileRows(core.statements)
    this.#fetched = fencedOneByOne('downloads.fetched', (tx, input: OneDownload & { file: FetchedFile; now: number }) =>
      this.#finish(tx, input),
    )
    this.#retry = fencedOneByOne('downloads.retry', (tx, input: OneDownload & { next: NextTry; sealed: Uint8Array }) =>
      this.#retryLater(tx, input),
    )
    this.#failed = fencedOneByOne(
      'downloads.failed',
      (tx, input: OneDownload & { failure: ReceivingFailure; now: number }) => this.#fail(tx, input),
    )
  }

  async listDue(instanceId: InstanceId, now: number, limit: number): Promise<DueDownloads> {
    const { statements, reader, sealing } = this.#core
    const query = statements.db.selectFrom('media_downloads').selectAll().where('instance_id', '=', instanceId)
    const rows = await reader.query(query.orderBy('due_at').limit(limit + 1))
    const dueRows = rows.slice(0, limit).filter(row => row.due_at <= now)
    const hasLater = rows.length > dueRows.length && dueRows.length < limit
    const skewed = hasLater ? await this.#listSkewed(instanceId, now, limit - dueRows.length) : []
    const due: Download[] = []
    const unreadable: string[] = []
    for (const { media_id: mediaId, message_id: messageId, created_at: createdAt, ...row } of [...dueRows, ...skewed]) {
      const { attempts, requests, sealed_source } = row
      const opened = openSource(sealing, instanceId, mediaId, sealed_source)
      if (opened === null) unreadable.push(mediaId)
      else due.push({ mediaId, messageId, createdAt, attempts, requests, ...opened })
    }
    return { due, unreadable, nextAt: rows[dueRows.length]?.due_at ?? null }
  }

  /** Rows that were recorded while the clock was ahead: they are due later than any pause allows. */
  #listSkewed(instanceId: InstanceId, now: number, limit: number): Promise<DownloadRow[]> {
    const { statements, reader } = this.#core
    const query = statements.db.selectFrom('media_downloads').selectAll().where('instance_id', '=', instanceId)
    const latest = now + CLOCK_TOLERANCE_MS
    return reader.query(
      query
        .where('due_at', '>', latest + LONGEST_PAUSE_MS)
        .where(({ eb, or }) => or([eb('requests', '=', 0), eb('due_at', '>', latest + LONGEST_REQUEST_PAUSE_MS)]))
        .orderBy('due_at')
        .limit(limit),
    )
  }

  async recordFetched(lease: Lease, mediaId: string, file: FetchedFile, now: number): Promise<ReceiveOutcome> {
    const written = await this.#core.write(this.#fetched, { lease, mediaId, file, now })
    return this.#published(lease, written)
  }

  async recordRetry(lease: Lease, mediaId: string, next: NextTry): Promise<void> {
    const sealed = sealSource(this.#core.sealing, lease.instanceId, mediaId, next)
    await this.#core.write(this.#retry, { lease, mediaId, next, sealed })
  }

  async recordFailed(lease: Lease, mediaId: string, failure: ReceivingFailure, now: number): Promise<void> {
    const written = await this.#core.write(this.#failed, { lease, mediaId, failure, now })
    this.#published(lease, written)
  }

  #published<O>({ instanceId }: Lease, { outcome, recorded, deliverable }: Outcome<O>): O {
    // The row contained the key of the file.
    if (recorded) this.#core.traces.note()
    if (deliverable) this.#core.hints.publish('deliveries', instanceId)
    if (recorded) this.#core.hints.publish('log', instanceId)
    return outcome
  }

  async #finish(
    tx: Transaction,
    { lease, mediaId, file, now }: OneDownload & { file: FetchedFile; now: number },
  ): Promise<Outcome<ReceiveOutcome>> {
    const { instanceId } = lease
    const nothing = { recorded: false, deliverable: false }
    const { size, mimetype, sha256, expiresAt, quotaBytes } = file
    const used = await this.#rows.lockUsage(tx, instanceId)
    const reserved = await this.#rows.findWriting(tx, file)
    const row = await this.#find(tx, instanceId, mediaId)
    if (reserved === null || row === null) return { outcome: 'given_up', ...nothing }
    if (used - reserved + size > quotaBytes)
      return { outcome: await this.#rows.fullOrBusy(tx, { ...file, used }), ...nothing }
    await this.#rows.markStored(tx, file)
    await this.#rows.use(tx, instanceId, size - reserved)
    const facts = { size, mimetype, sha256 }
    const { db } = this.#core.statements
    await tx.query(
      db
        .updateTable('media')
        .set({ ...facts, file_id: file.fileId, expires_at: expiresAt })
        .where('instance_id', '=', instanceId)
        .where('id', '=', mediaId),
    )
    return { outcome: 'stored', ...(await this.#report(tx, row, null, now, facts)) }
  }

  async #retryLater(
    tx: Transaction,
    { lease, mediaId, next, sealed }: OneDownload & { next: NextTry; sealed: Uint8Array },
  ): Promise<void> {
    const { attempts, requests, dueAt } = next
    await tx.query(
      this.#core.statements.db
        .updateTable('media_downloads')
        .set({ attempts, requests, due_at: dueAt, sealed_source: sealed })
        .where('instance_id', '=', lease.instanceId)
        .where('media_id', '=', mediaId),
    )
  }

  async #fail(
    tx: Transaction,
    { lease: { instanceId }, mediaId, failure, now }: OneDownload & { failure: ReceivingFailure; now: number },
  ): Promise<Outcome<void>> {
    const row = await this.#find(tx, instanceId, mediaId)
    if (row === null) return { outcome: undefined, recorded: false, deliverable: false }
    const gone = { filename: null, gone_at: now, gone_reason: failure }
    const { db } = this.#core.statements
    await tx.query(db.updateTable('media').set(gone).where('instance_id', '=', instanceId).where('id', '=', mediaId))
    return { outcome: undefined, ...(await this.#report(tx, row, failure, now)) }
  }

  /**
   * Null if there is no such download, because the medium was erased. A node of the previous version erases a medium
   * without its download.
   */
  async #find(tx: Transaction, instanceId: InstanceId, mediaId: string): Promise<DownloadRow | null> {
    const { db } = this.#core.statements
    // The medium is locked first, in the same order as in its erasure.
    const medium = db.selectFrom('media').select('gone_at').where('instance_id', '=', instanceId)
    const [found] = await tx.query(this.#core.statements.locking(medium.where('id', '=', mediaId), 'update', 'media'))
    if (found === undefined || found.gone_at !== null) {
      const left = db.deleteFrom('media_downloads').where('instance_id', '=', instanceId)
      await tx.query(left.where('media_id', '=', mediaId))
      return null
    }
    const row = db.selectFrom('media_downloads').selectAll().where('instance_id', '=', instanceId)
    const locked = this.#core.statements.locking(row.where('media_id', '=', mediaId), 'update', 'media_downloads')
    return (await tx.query(locked))[0] ?? null
  }

  /** Deletes a download that has ended, and records its event. */
  async #report(
    tx: Transaction,
    { instance_id: instanceId, media_id: id, message_id: messageId, sealed_source }: DownloadRow,
    failure: ReceivingFailure | null,
    now: number,
    found: Partial<FileFacts> = {},
  ): Promise<{ recorded: boolean; deliverable: boolean }> {
    const { db } = this.#core.statements
    await tx.query(db.deleteFrom('media_downloads').where('instance_id', '=', instanceId).where('media_id', '=', id))
    const opened = openSource(this.#core.sealing, instanceId, id, sealed_source)
    const stated = opened && { facts: opened.facts, chat: opened.chat, whatsappId: opened.source.key.id }
    const message = stated ?? (await this.#findMessage(tx, instanceId, messageId))
    if (message === null) return { recorded: true, deliverable: false }
    const media = { id, facts: { ...message.facts, ...found }, failure }
    const event = {
      instance_id: instanceId,
      id: newEventId(now),
      kind: failure === null ? ('media.ready' as const) : ('media.failed' as const),
      timestamp: now,
      created_at: now,
      message_id: messageId,
      incoming_digest: null,
      body: mediaBody(instanceId, { messageId, id: message.whatsappId, chat: message.chat }, media, now),
    }
    const { deliverable } = await this.#recorder.record(tx, [event])
    return { recorded: true, deliverable: deliverable.has(instanceId) }
  }
  /** The same facts from the message, which may have been erased already. */
  async #findMessage(tx: Transaction, instanceId: InstanceId, messageId: string) {
    const message = selectIncoming(this.#core.statements).where('incoming_messages.instance_id', '=', instanceId)
    const [row] = await tx.query(message.where('incoming_messages.id', '=', messageId))
    if (row === undefined) return null
    const { id: whatsappId, chat, media } = toIncoming(row)
    return media ? { facts: media.facts, chat, whatsappId } : null
  }
}
