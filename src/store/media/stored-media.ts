import { sql } from 'kysely'
import type { InstanceId } from '../../domain/ids.ts'
import { CLOCK_TOLERANCE_MS } from '../../kit/clock.ts'
import { mediaKeyPlace } from '../encryption/sealing.ts'
import type { Transaction } from '../engine/backend.ts'
import type { Core } from '../engine/core.ts'
import { oneByOne } from '../engine/operation.ts'
import type { Page, PageRequest } from '../engine/page.ts'
import type { Statements } from '../engine/statement.ts'
import { FileRows, IS_QUEUED_IN, toMedia } from './file-rows.ts'
import { folderQuery, recordFolder, toFolderRecord } from './folder-record.ts'
import { findListed, listMedia } from './listed-media.ts'
import type {
  DiscardOutcome,
  FileName,
  FinishedFile,
  FinishOutcome,
  FolderRecord,
  FoundMedia,
  ListedMedia,
  MediaRows,
  NewFile,
} from './media.ts'

/** A file that nobody has extended for this long is given up. */
const WRITER_GONE_AFTER_MS = 5 * 60_000
const REMOVE_AGAIN_AFTER_MS = 60_000
/** Media in one commit. */
const STEP = 50

type NewRow = NewFile & { sealedKey: Uint8Array }

export class StoredMedia implements MediaRows {
  readonly #core: Core
  readonly #operations

  constructor(core: Core) {
    this.#core = core
    this.#operations = operations(core.statements)
  }

  begin(file: NewFile): Promise<'begun' | 'full' | 'busy' | 'no_instance'> {
    const sealedKey = this.#core.sealing.seal(file.instanceId, placeOf(file), file.key)
    return this.#core.write(this.#operations.begin, { ...file, sealedKey })
  }

  extend(file: FileName): Promise<boolean> {
    return this.#core.write(this.#operations.extend, file)
  }

  finish(file: FinishedFile, now: number): Promise<FinishOutcome> {
    return this.#core.write(this.#operations.finish, { ...file, now })
  }

  discard(file: FileName): Promise<DiscardOutcome> {
    return this.#core.write(this.#operations.discard, file)
  }

  async find(instanceId: InstanceId, id: string): Promise<FoundMedia | null> {
    const { db } = this.#core.statements
    const [row] = await this.#core.reader.query(
      db
        .selectFrom('media as m')
        .leftJoin('media_files as f', join =>
          join.onRef('f.instance_id', '=', 'm.instance_id').onRef('f.id', '=', 'm.file_id'),
        )
        .select([
          'm.id',
          'm.mimetype',
          'm.size',
          'm.sha256',
          'm.filename',
          'm.expires_at',
          'm.gone_at',
          'm.gone_reason',
        ])
        .select(['f.id as file_id', 'f.sealed_key'])
        .where('m.instance_id', '=', instanceId)
        .where('m.id', '=', id),
    )
    if (row === undefined) return null
    const { file_id: fileId, sealed_key: sealedKey, sha256, gone_at, gone_reason } = row
    if (fileId === null && gone_at === null) return { kind: 'pending' }
    if (fileId === null || sealedKey === null || sha256 === null)
      return { kind: 'gone', reason: gone_reason ?? 'erased' }
    const file = { instanceId, fileId }
    const key = this.#core.sealing.open(instanceId, placeOf(file), sealedKey)
    return { kind: 'stored', media: toMedia({ ...row, sha256 }), file, key }
  }

  list(instanceId: InstanceId, page: PageRequest): Promise<Page<ListedMedia>> {
    return listMedia(this.#core, instanceId, page)
  }

  findListed(instanceId: InstanceId, id: string): Promise<ListedMedia | null> {
    return findListed(this.#core, instanceId, id)
  }

  async readUsage(instanceId: InstanceId): Promise<number> {
    const usage = this.#core.statements.db.selectFrom('media_usage').select('bytes')
    const [row] = await this.#core.reader.query(usage.where('instance_id', '=', instanceId))
    return row?.bytes ?? 0
  }

  async erase(instanceId: InstanceId, id: string, now: number): Promise<boolean | 'in_use'> {
    const erased = await this.#core.write(this.#operations.erase, { instanceId, id, now })
    if (erased === true) {
      this.#core.traces.note()
      this.#core.hints.publish('log', instanceId)
    }
    return erased
  }

  async expire(now: number, goneBefore: number): Promise<number> {
    const count = await this.#core.write(this.#operations.expire, { now, goneBefore })
    if (count > 0) this.#core.traces.note()
    return count
  }

  async findFolder(): Promise<FolderRecord> {
    const [row] = await this.#core.reader.query(folderQuery(this.#core.statements))
    return toFolderRecord(row!)
  }

  async recordFolder(id: string, former: string | null): Promise<string> {
    return (await this.#core.write(this.#operations.recordFolder, { id, former })).id
  }

  claimDoomed(limit: number): Promise<FileName[]> {
    return this.#core.write(this.#operations.claimDoomed, { limit })
  }

  async forget(file: FileName): Promise<void> {
    await this.#core.write(this.#operations.forget, file)
    // The row contained the key of the file.
    this.#core.traces.note()
  }
}

function placeOf({ instanceId, fileId }: FileName): string {
  return mediaKeyPlace(instanceId, fileId)
}

const instanceOf = ({ instanceId }: { instanceId: InstanceId }) => instanceId

function operations(statements: Statements) {
  const { db, now: databaseNow } = statements
  const rows = new FileRows(statements)

  // For the audit, an upload is a change when it has ended. The operations before that and the clean-up are no changes.
  return {
    recordFolder: recordFolder(statements),

    begin: oneByOne(
      'media.begin',
      instanceOf,
      async (tx, file: NewRow): Promise<'begun' | 'full' | 'busy' | 'no_instance'> => {
        const { instanceId, fileId, sealedKey, size, quotaBytes } = file
        // The lock waits for a deletion of the instance, and delays a later one.
        const instance = db
          .selectFrom('instances')
          .select('id')
          .where('id', '=', instanceId)
          .where('deleted_at', 'is', null)
        if ((await tx.query(statements.locking(instance, 'key share', 'instances'))).length === 0) return 'no_instance'
        const used = await rows.lockUsage(tx, instanceId)
        const fits = used + size <= quotaBytes
        if (!fits && !(await rows.hasOfSize(tx, instanceId, size))) return rows.fullOrBusy(tx, { ...file, used })
        // A file that does not fit may have the content of a known one. It reserves nothing, so other files still fit.
        const reserved = fits ? size : 0
        await tx.query(
          db.insertInto('media_files').values({
            instance_id: instanceId,
            id: fileId,
            state: 'writing',
            sealed_key: sealedKey,
            size: reserved,
            due_at: sql<number>`${databaseNow} + ${sql.lit(WRITER_GONE_AFTER_MS)}`,
          }),
        )
        await rows.use(tx, instanceId, reserved)
        return 'begun'
      },
      false,
    ),

    extend: oneByOne(
      'media.extend',
      instanceOf,
      async (tx, file: FileName) => {
        const due_at = sql<number>`${databaseNow} + ${sql.lit(WRITER_GONE_AFTER_MS)}`
        const extended = db.updateTable('media_files').set({ due_at }).where('state', '=', 'writing')
        return (await tx.query(rows.of(extended, file).returning('id'))).length > 0
      },
      false,
    ),

    finish: oneByOne(
      'media.finish',
      instanceOf,
      (tx, file: FinishedFile & { now: number }) => finish(tx, rows, file),
      ({ kind }) => kind === 'stored',
    ),

    discard: oneByOne(
      'media.discard',
      instanceOf,
      async (tx, file: FileName): Promise<DiscardOutcome> => {
        if (await rows.doom(tx, file, 'writing')) return 'doomed'
        const stored = db.selectFrom('media_files').select('id').where('state', '=', 'stored')
        return (await tx.query(rows.of(stored, file))).length > 0 ? 'stored' : 'given_up'
      },
      false,
    ),

    erase: oneByOne(
      'media.erase',
      instanceOf,
      async (
        tx,
        { instanceId, id, now }: { instanceId: InstanceId; id: string; now: number },
      ): Promise<boolean | 'in_use'> => {
        const medium = db.selectFrom('media').select(['instance_id', 'id', 'file_id']).where('gone_at', 'is', null)
        const own = medium.where('instance_id', '=', instanceId).where('id', '=', id)
        const [found] = await tx.query(statements.locking(own, 'update', 'media'))
        if (found === undefined) return false
        if ((await rows.withoutQueued(tx, [found])).length === 0) return 'in_use'
        await rows.letGo(tx, found, 'erased', now)
        return true
      },
      erased => erased === true,
    ),

    expire: oneByOne(
      'media.expire',
      () => '',
      async (tx, { now, goneBefore }: { now: number; goneBefore: number }) => {
        const lock = statements.dialect.lock(sql`for update of media skip locked`)
        const media = db
          .selectFrom('media')
          .select(['media.instance_id', 'media.id', 'file_id'])
          .where('gone_at', 'is', null)
          .where(sql<boolean>`not ${IS_QUEUED_IN}`)
        // A file that is still being fetched does not expire: its download or fetch is given up long before.
        const old = media.where('expires_at', '<=', now).where('file_id', 'is not', null)
        const expired = await tx.query(old.limit(STEP).modifyEnd(lock))
        const left = media
          .innerJoin('instances', 'instances.id', 'media.instance_id')
          .where('deleted_at', 'is not', null)
        const erased = await tx.query(left.limit(STEP).modifyEnd(lock))
        // Checked again: a message may have been accepted before the locks.
        for (const medium of await rows.withoutQueued(tx, expired)) await rows.letGo(tx, medium, 'expired', now)
        for (const medium of await rows.withoutQueued(tx, erased)) await rows.letGo(tx, medium, 'erased', now)
        const forgotten = sql<{ id: string }>`delete from media where (instance_id, id) in
        (select instance_id, id from media where gone_at < ${goneBefore} limit ${sql.lit(STEP)}) returning id`
        return expired.length + erased.length + (await tx.query({ compile: () => forgotten.compile(db) })).length
      },
    ),

    claimDoomed: oneByOne(
      'media.claimDoomed',
      () => '',
      async (tx, { limit }: { limit: number }): Promise<FileName[]> => {
        const lock = statements.dialect.lock(sql`for update skip locked`)
        // A later time was recorded by a clock that was ahead.
        const latest = sql`${databaseNow} + ${sql.lit(WRITER_GONE_AFTER_MS + CLOCK_TOLERANCE_MS)}`
        const claim = sql<{ instance_id: string; id: string }>`update media_files
        set state = 'removing', due_at = ${databaseNow} + ${sql.lit(REMOVE_AGAIN_AFTER_MS)}
        where (instance_id, id) in (select instance_id, id from media_files
          where due_at is not null and (due_at <= ${databaseNow} or due_at > ${latest}) order by due_at limit ${limit} ${lock})
        returning instance_id, id`
        const claimed = await tx.query({ compile: () => claim.compile(db) })
        return claimed.map(({ instance_id, id }) => ({ instanceId: instance_id, fileId: id }))
      },
    ),

    forget: oneByOne(
      'media.forget',
      instanceOf,
      async (tx, file: FileName): Promise<void> => {
        await rows.lockUsage(tx, file.instanceId)
        const removal = db.deleteFrom('media_files').where('state', '=', 'removing')
        const [row] = await tx.query(rows.of(removal, file).returning('size'))
        if (row !== undefined) await rows.use(tx, file.instanceId, -row.size)
      },
      false,
    ),
  }
}

async function finish(tx: Transaction, rows: FileRows, file: FinishedFile & { now: number }): Promise<FinishOutcome> {
  const { instanceId, size, sha256, filename, expiresAt, quotaBytes } = file
  const used = await rows.lockUsage(tx, instanceId)
  const reserved = await rows.findWriting(tx, file)
  if (reserved === null) return { kind: 'given_up' }
  const known = await rows.findContent(tx, instanceId, sha256)
  if (known === null && used - reserved + size > quotaBytes) return { kind: 'full' }
  await rows.markStored(tx, file)
  await rows.use(tx, instanceId, size - reserved)
  if (known !== null) {
    await rows.doom(tx, { instanceId, fileId: known.file_id! })
    return { kind: 'stored', media: toMedia(await rows.renew(tx, known.id, file)) }
  }
  const { id, mimetype } = file
  await rows.insert(tx, file)
  return { kind: 'stored', media: { id, mimetype, size, sha256, filename, expiresAt } }
}
