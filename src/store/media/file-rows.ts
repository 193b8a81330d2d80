import { sql } from 'kysely'
import type { InstanceId } from '../../domain/ids.ts'
import { type GoneReason, type Media, UNKNOWN_TYPE } from '../../domain/media.ts'
import type { Transaction } from '../engine/backend.ts'
import type { MediaFileState } from '../engine/schema/media.ts'
import { IS_QUEUED } from '../engine/schema/messages.ts'
import type { Statements } from '../engine/statement.ts'
import type { FileName, FinishedFile, NewFile } from './media.ts'

interface MediaRow {
  id: string
  mimetype: string
  size: number
  sha256: Uint8Array
  filename: string | null
  expires_at: number
}

export function toMedia({ id, mimetype, size, sha256, filename, expires_at }: MediaRow): Media {
  return { id, mimetype, size, sha256, filename, expiresAt: expires_at }
}

/** Whether a queued message contains the file of this row of `media`. */
export const IS_QUEUED_IN = sql<boolean>`exists (select 1 from messages where messages.instance_id = media.instance_id
  and messages.media_id = media.id and messages.media_id is not null and ${IS_QUEUED})`

/** A transaction that changes an instance's usage calls `lockUsage` first, so that two cannot exceed the quota. */
export class FileRows {
  readonly #statements: Statements

  constructor(statements: Statements) {
    this.#statements = statements
  }

  /** @returns the bytes that the instance uses */
  async lockUsage(tx: Transaction, instance_id: InstanceId): Promise<number> {
    const { db } = this.#statements
    await tx.query(
      db
        .insertInto('media_usage')
        .values({ instance_id, bytes: 0 })
        .onConflict(oc => oc.doNothing()),
    )
    const usage = db.selectFrom('media_usage').select('bytes').where('instance_id', '=', instance_id)
    const [row] = await tx.query(this.#statements.locking(usage, 'update', 'media_usage'))
    return row!.bytes
  }

  async use(tx: Transaction, instanceId: InstanceId, bytes: number): Promise<void> {
    const { db } = this.#statements
    await tx.query(
      db
        .updateTable('media_usage')
        .set(eb => ({ bytes: eb('bytes', '+', bytes) }))
        .where('instance_id', '=', instanceId),
    )
  }

  /** Why a file does not fit. `busy`: it would, without the files that are being written or removed. */
  async fullOrBusy(
    tx: Transaction,
    { instanceId, used, size, quotaBytes }: Pick<NewFile, 'instanceId' | 'size' | 'quotaBytes'> & { used: number },
  ): Promise<'full' | 'busy'> {
    const { db } = this.#statements
    const files = db.selectFrom('media_files').where('instance_id', '=', instanceId).where('state', '<>', 'stored')
    const [row] = await tx.query(files.select(eb => eb.fn.sum('size').as('bytes')))
    return used - Number(row!.bytes) + size > quotaBytes ? 'full' : 'busy'
  }

  /** Whether callers have uploaded a file of this size. A new file of this size may have the same content. */
  async hasOfSize(tx: Transaction, instanceId: InstanceId, size: number): Promise<boolean> {
    const { db } = this.#statements
    const media = db.selectFrom('media').select('id').where('instance_id', '=', instanceId).where('gone_at', 'is', null)
    const same = media.where('size', '=', size).where('received', '=', sql.lit(0))
    return (await tx.query(same.limit(1))).length > 0
  }

  /** @returns the bytes that are reserved for the file, or null if it is not being written any more */
  async findWriting(tx: Transaction, { instanceId, fileId }: FileName): Promise<number | null> {
    const { db } = this.#statements
    const file = db
      .selectFrom('media_files')
      .select('size')
      .where('instance_id', '=', instanceId)
      .where('id', '=', fileId)
    const [row] = await tx.query(this.#statements.locking(file.where('state', '=', 'writing'), 'update', 'media_files'))
    return row?.size ?? null
  }

  /** The medium that callers uploaded with this content. Received and fetched media belong to their messages only. */
  async findContent(tx: Transaction, instanceId: InstanceId, sha256: Uint8Array) {
    const { db } = this.#statements
    const media = db.selectFrom('media').select(['id', 'file_id']).where('instance_id', '=', instanceId)
    const known = media.where('sha256', '=', sha256).where('received', '=', sql.lit(0))
    const [row] = await tx.query(this.#statements.locking(known, 'update', 'media'))
    return row ?? null
  }

  async markStored(tx: Transaction, { size, ...file }: FileName & { size: number }): Promise<void> {
    const { db } = this.#statements
    await tx.query(this.of(db.updateTable('media_files').set({ state: 'stored', size, due_at: null }), file))
  }

  async insert(tx: Transaction, file: FinishedFile & { now: number }): Promise<void> {
    const { instanceId, fileId, id, sha256, filename, size, mimetype, expiresAt, now } = file
    await tx.query(
      this.#statements.db.insertInto('media').values({
        instance_id: instanceId,
        id,
        file_id: fileId,
        sha256,
        filename,
        size,
        mimetype,
        created_at: now,
        expires_at: expiresAt,
      }),
    )
  }

  /** Gives a known medium a new file with the same content. */
  async renew(
    tx: Transaction,
    id: string,
    { instanceId, fileId, filename, mimetype, expiresAt }: FinishedFile,
  ): Promise<MediaRow> {
    const [row] = await tx.query(
      this.#statements.db
        .updateTable('media')
        .set(eb => ({
          file_id: fileId,
          filename: eb.fn.coalesce(eb.val(filename), 'filename'),
          mimetype: sql<string>`case when mimetype = ${sql.lit(UNKNOWN_TYPE)} then ${mimetype} else mimetype end`,
          expires_at: sql<number>`case when expires_at < ${expiresAt} then ${expiresAt} else expires_at end`,
        }))
        .where('instance_id', '=', instanceId)
        .where('id', '=', id)
        .returning(['id', 'mimetype', 'size', 'sha256', 'filename', 'expires_at']),
    )
    return row as MediaRow
  }

  /** @param media locked rows @returns the rows that no queued message contains */
  async withoutQueued<M extends { instance_id: string; id: string }>(
    tx: Transaction,
    media: readonly M[],
  ): Promise<M[]> {
    const { db } = this.#statements
    const free: M[] = []
    for (const medium of media) {
      const row = db.selectFrom('media').select('id').where('instance_id', '=', medium.instance_id)
      const found = await tx.query(row.where('id', '=', medium.id).where(IS_QUEUED_IN))
      if (found.length === 0) free.push(medium)
    }
    return free
  }

  /** Marks the bytes of a medium for removal, ends its download or fetch, and erases its hash and name. */
  async letGo(
    tx: Transaction,
    { instance_id: instanceId, id, file_id }: { instance_id: string; id: string; file_id: string | null },
    reason: GoneReason,
    now: number,
  ): Promise<void> {
    const { db } = this.#statements
    for (const table of ['media_downloads', 'media_fetches'] as const)
      await tx.query(db.deleteFrom(table).where('instance_id', '=', instanceId).where('media_id', '=', id))
    const gone = { file_id: null, sha256: null, filename: null, gone_at: now, gone_reason: reason }
    await tx.query(db.updateTable('media').set(gone).where('instance_id', '=', instanceId).where('id', '=', id))
    if (file_id !== null) await this.doom(tx, { instanceId, fileId: file_id })
  }

  /** Marks a file for removal. @returns false if the file is not in this state */
  async doom(tx: Transaction, file: FileName, state: MediaFileState = 'stored'): Promise<boolean> {
    const { db, now } = this.#statements
    const doomed = db.updateTable('media_files').set({ state: 'removing', due_at: now }).where('state', '=', state)
    return (await tx.query(this.of(doomed, file).returning('id'))).length > 0
  }

  of<Q extends { where(column: 'instance_id' | 'id', operator: '=', value: string): Q }>(query: Q, file: FileName): Q {
    return query.where('instance_id', '=', file.instanceId).where('id', '=', file.fileId)
  }
}
