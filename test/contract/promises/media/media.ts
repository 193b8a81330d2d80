import { createHash, randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type InstanceId, newMediaFileId, newMediaId } from '../../../../src/domain/ids.ts'
import { type MediaForm, UNKNOWN_TYPE } from '../../../../src/domain/media.ts'
import type { FinishedFile } from '../../../../src/store/media/media.ts'
import type { NewMessage } from '../../../../src/store/messages/messages.ts'
import type { Store } from '../../../../src/store/store.ts'
import {
  createConnected,
  createOwned,
  idempotency,
  newInstance,
  newMessage,
  PREPARED,
  take,
  withStore,
} from '../../fixture.ts'
import type { CreateHarness } from '../../harness.ts'

const QUOTA = 1_000
const NOW = 5_000
const LATER = 1e15

async function createInstance(store: Store): Promise<InstanceId> {
  const instance = newInstance()
  await store.instances.create(instance, 0)
  return instance.id
}

function newFile(instanceId: InstanceId, size = 100) {
  return { instanceId, fileId: newMediaFileId(Date.now()), key: randomBytes(32), size, quotaBytes: QUOTA }
}

type File = ReturnType<typeof newFile>

function finished({ instanceId, fileId, size }: File, changes: Partial<FinishedFile> = {}): FinishedFile {
  const sha256 = createHash('sha256').update(fileId).digest()
  const facts = { mimetype: 'image/png', size, sha256, filename: 'a.png', expiresAt: LATER, quotaBytes: QUOTA }
  return { instanceId, fileId, id: newMediaId(Date.now()), ...facts, ...changes }
}

export async function storeFile(store: Store, instanceId: InstanceId, changes: Partial<FinishedFile> = {}) {
  const file = newFile(instanceId, changes.size)
  expect(await store.media.begin(file)).toBe('begun')
  const outcome = await store.media.finish(finished(file, changes), NOW)
  if (outcome.kind !== 'stored') throw new Error(`Not stored: ${outcome.kind}.`)
  return { file, media: outcome.media }
}

const nameOf = ({ instanceId, fileId }: File) => ({ instanceId, fileId })

/** Removes the files of one instance as a node would, and leaves those of other tests to be claimed again. */
async function removeDoomed(store: Store, instanceId: InstanceId): Promise<string[]> {
  const own = (await store.media.claimDoomed(1_000)).filter(file => file.instanceId === instanceId)
  for (const file of own) await store.media.forget(file)
  return own.map(({ fileId }) => fileId)
}

export function mediaContract(createHarness: CreateHarness): void {
  describe('media', () => {
    const context = withStore(createHarness)

    test('exist once their file is finished, with its key, in their own instance only', async () => {
      const instanceId = await createInstance(context.store)
      const file = newFile(instanceId)
      const facts = finished(file)
      expect(await context.store.media.begin(file)).toBe('begun')
      expect(await context.store.media.find(instanceId, facts.id)).toBeNull()
      const outcome = await context.store.media.finish(facts, NOW)
      const { id, mimetype, size, sha256, filename, expiresAt } = facts
      const media = { id, mimetype, size, sha256, filename, expiresAt }
      expect(outcome).toEqual({ kind: 'stored', media })
      const found = await context.store.media.find(instanceId, id)
      expect(found).toMatchObject({ kind: 'stored', media: { id, size }, file: nameOf(file) })
      expect(found?.kind === 'stored' && Buffer.from(found.key).equals(file.key)).toBe(true)
      expect(await context.store.media.find(await createInstance(context.store), id)).toBeNull()
      const rows = await context.harness.execute(`select * from media_files where id = '${file.fileId}'`)
      expect(Buffer.from(rows[0]!['sealed_key'] as Uint8Array).includes(file.key)).toBe(false)
    })

    test('with the same content keep their ID and known type, get the new file and expire later, never earlier', async () => {
      const instanceId = await createInstance(context.store)
      const file = { sha256: randomBytes(32), mimetype: UNKNOWN_TYPE }
      const first = await storeFile(context.store, instanceId, { ...file, expiresAt: 100 })
      const second = await storeFile(context.store, instanceId, { sha256: file.sha256, expiresAt: 200, filename: null })
      const third = await storeFile(context.store, instanceId, { ...file, expiresAt: 150, filename: 'b.png' })
      expect(second.media).toMatchObject({ id: first.media.id, expiresAt: 200, filename: 'a.png' })
      expect(third.media).toMatchObject({
        id: first.media.id,
        expiresAt: 200,
        filename: 'b.png',
        mimetype: 'image/png',
      })
      expect(await context.store.media.find(instanceId, first.media.id)).toMatchObject({ file: nameOf(third.file) })
      const removed = await removeDoomed(context.store, instanceId)
      expect(removed.toSorted()).toEqual([first.file.fileId, second.file.fileId].toSorted())
      const other = await storeFile(context.store, await createInstance(context.store), file)
      expect(other.media.id).not.toBe(first.media.id)
    })

    test('never exceed the quota together, however many are uploaded at the same time', async () => {
      const instanceId = await createInstance(context.store)
      // The size of these is known only when they are complete.
      const files = Array.from({ length: 8 }, () => newFile(instanceId, 0))
      expect(await Promise.all(files.map(file => context.store.media.begin(file)))).toEqual(Array(8).fill('begun'))
      const outcomes = await Promise.all(
        files.map(file => context.store.media.finish(finished(file, { size: 300 }), NOW)),
      )
      expect(outcomes.filter(({ kind }) => kind === 'stored')).toHaveLength(3)
      expect(outcomes.filter(({ kind }) => kind === 'full')).toHaveLength(5)
      const declared = Array.from({ length: 5 }, () => newFile(instanceId, 40))
      const begun = await Promise.all(declared.map(file => context.store.media.begin(file)))
      expect(begun.filter(outcome => outcome === 'begun')).toHaveLength(2)
    })

    test('that do not fit take no space from those that do', async () => {
      const instanceId = await createInstance(context.store)
      const size = Math.floor(QUOTA / 2.5)
      await storeFile(context.store, instanceId, { size })
      const [fits, tooMuch] = [newFile(instanceId, size), newFile(instanceId, size)]
      // A file of this size is stored, so each upload may turn out to have the same content.
      for (const file of [fits, tooMuch]) expect(await context.store.media.begin(file)).toBe('begun')
      expect(await context.store.media.finish(finished(fits), NOW)).toMatchObject({ kind: 'stored' })
      expect(await context.store.media.finish(finished(tooMuch), NOW)).toEqual({ kind: 'full' })
      await context.store.media.discard(tooMuch)
      await removeDoomed(context.store, instanceId)
      expect(await context.store.media.readUsage(instanceId)).toBe(2 * size)
    })

    test('that fill the quota can be uploaded again, and erasing one frees space when its file is removed', async () => {
      const instanceId = await createInstance(context.store)
      const sha256 = randomBytes(32)
      const first = await storeFile(context.store, instanceId, { sha256, size: QUOTA })
      const again = newFile(instanceId, QUOTA)
      expect(await context.store.media.begin(again)).toBe('begun')
      expect(await context.store.media.finish(finished(again, { sha256 }), NOW)).toMatchObject({ kind: 'stored' })
      const another = newFile(instanceId, QUOTA)
      expect(await context.store.media.begin(another)).toBe('begun')
      expect(await context.store.media.finish(finished(another), NOW)).toEqual({ kind: 'full' })
      await context.store.media.discard(another)
      expect(await context.store.media.begin(newFile(instanceId, 1))).toBe('full')
      expect(await context.store.media.erase(instanceId, first.media.id, NOW)).toBe(true)
      expect(await context.store.media.begin(newFile(instanceId, 1))).toBe('busy')
      expect(await removeDoomed(context.store, instanceId)).toHaveLength(3)
      expect(await context.store.media.begin(newFile(instanceId, QUOTA))).toBe('begun')
    })

    test('that are erased or expired are gone with their reason, and their content and name are forgotten', async () => {
      const instanceId = await createInstance(context.store)
      const erased = await storeFile(context.store, instanceId)
      const expired = await storeFile(context.store, instanceId, { expiresAt: 20_000 })
      const kept = await storeFile(context.store, instanceId, { expiresAt: 20_001 })
      const find = async ({ media }: typeof kept) => context.store.media.find(instanceId, media.id)
      expect(await context.store.media.erase(instanceId, erased.media.id, 10_000)).toBe(true)
      expect(await context.store.media.erase(instanceId, erased.media.id, 10_000)).toBe(false)
      expect(await context.store.media.erase(await createInstance(context.store), kept.media.id, 10_000)).toBe(false)
      while ((await context.store.media.expire(20_000, 0)) > 0);
      expect(await find(erased)).toEqual({ kind: 'gone', reason: 'erased' })
      expect(await find(expired)).toEqual({ kind: 'gone', reason: 'expired' })
      expect(await find(kept)).toMatchObject({ kind: 'stored' })
      const rows = await context.harness.execute(
        `select * from media where instance_id = '${instanceId}' and gone_at is not null`,
      )
      for (const row of rows) expect(row).toMatchObject({ sha256: null, filename: null, file_id: null })
      expect((await removeDoomed(context.store, instanceId)).toSorted()).toEqual(
        [erased.file.fileId, expired.file.fileId].toSorted(),
      )
      while ((await context.store.media.expire(20_000, 15_000)) > 0);
      expect(await find(erased)).toBeNull()
      expect(await find(expired)).toEqual({ kind: 'gone', reason: 'expired' })
    })

    test('of a deleted instance are removed before the instance is erased', async () => {
      const lease = await createOwned(context.store)
      const { instanceId } = lease
      const { file } = await storeFile(context.store, instanceId)
      const writing = newFile(instanceId)
      await context.store.media.begin(writing)
      await context.store.instances.delete(instanceId, NOW)
      const deleted = await take(context.store, instanceId)
      expect(await context.store.media.begin(newFile(instanceId))).toBe('no_instance')
      expect(await context.store.instances.erase(deleted)).toBe(false)
      expect(await context.store.media.finish(finished(writing), NOW)).toMatchObject({ kind: 'stored' })
      while ((await context.store.media.expire(NOW, 0)) > 0);
      expect(await context.store.instances.erase(deleted)).toBe(false)
      expect((await removeDoomed(context.store, instanceId)).toSorted()).toEqual(
        [file.fileId, writing.fileId].toSorted(),
      )
      expect(await context.store.instances.erase(deleted)).toBe(true)
      for (const table of ['media', 'media_files', 'media_usage'])
        expect(await context.harness.execute(`select * from ${table} where instance_id = '${instanceId}'`)).toEqual([])
    })
  })

  describe('a file that a queued message contains', () => {
    const context = withStore(createHarness)

    async function acceptFile(changes: Partial<NewMessage> = {}) {
      const lease = await createConnected(context.store)
      const { media } = await storeFile(context.store, lease.instanceId, { expiresAt: 10 })
      const file = { mediaId: media.id, form: 'image', filename: null } as const
      const message = newMessage(lease.instanceId, { file, text: 'a caption', ...changes })
      return { lease, media, message, outcome: await context.store.messages.accept(message, NOW) }
    }

    test('stays until the message is settled: it is neither erased nor does it expire', async () => {
      const { lease, media, message } = await acceptFile()
      const { instanceId } = lease
      const [queued] = await context.store.messages.listQueued(instanceId, 1)
      // Its own name, because the message gives none.
      expect(queued).toMatchObject({ text: 'a caption', file: { mediaId: media.id, form: 'image', filename: 'a.png' } })
      expect(await context.store.messages.find(instanceId, message.id)).toMatchObject({ file: { mediaId: media.id } })
      expect(await context.store.media.erase(instanceId, media.id, NOW)).toBe('in_use')
      while ((await context.store.media.expire(NOW, 0)) > 0);
      expect(await context.store.media.find(instanceId, media.id)).toMatchObject({ kind: 'stored' })
      await context.store.messages.recordPrepared(lease, message.id, PREPARED)
      await context.store.messages.recordProgress(lease, message.whatsappId, 'sent', NOW)
      expect(await context.store.media.erase(instanceId, media.id, NOW)).toBe(true)
    })

    test('is not accepted once it is gone, nor from another instance; the key is not used up', async () => {
      const key = idempotency('once')
      const { lease, media } = await acceptFile()
      const stranger = await acceptFile({ file: { mediaId: media.id, form: 'image', filename: null } })
      expect(stranger.outcome).toEqual({ kind: 'no_media' })
      await context.store.media.erase(stranger.lease.instanceId, stranger.media.id, NOW)
      const file = { mediaId: stranger.media.id, form: 'image', filename: null } as const
      const gone = newMessage(stranger.lease.instanceId, { file, idempotency: key })
      expect(await context.store.messages.accept(gone, NOW)).toEqual({ kind: 'no_media' })
      const text = newMessage(stranger.lease.instanceId, { idempotency: key })
      expect(await context.store.messages.accept(text, NOW)).toMatchObject({ kind: 'accepted' })
      expect(await context.store.media.find(lease.instanceId, media.id)).toMatchObject({ kind: 'stored' })
    })

    test('is shown only in the forms that its type allows', async () => {
      const lease = await createConnected(context.store)
      const { media } = await storeFile(context.store, lease.instanceId)
      const accept = (form: MediaForm | null, text = '') => {
        const file = { mediaId: media.id, form, filename: 'b.png' }
        return context.store.messages.accept(newMessage(lease.instanceId, { file, text }), NOW)
      }
      expect(await accept(null)).toMatchObject({ kind: 'accepted' })
      expect(await accept('document', 'a caption')).toMatchObject({ kind: 'accepted' })
      expect(await accept('voice')).toEqual({ kind: 'unsupported', why: 'form' })
      const audio = await storeFile(context.store, lease.instanceId, { mimetype: 'audio/amr' })
      const file = { mediaId: audio.media.id, form: null, filename: null }
      const captioned = newMessage(lease.instanceId, { file, text: 'a caption' })
      expect(await context.store.messages.accept(captioned, NOW)).toEqual({ kind: 'unsupported', why: 'caption' })
      const queued = await context.store.messages.listQueued(lease.instanceId, 9)
      expect(queued.map(message => message.file)).toEqual([
        { mediaId: media.id, form: 'image', filename: 'b.png' },
        { mediaId: media.id, form: 'document', filename: 'b.png' },
      ])
    })

    test('may be the image of a preview: it stays as well, and must be a picture of the instance', async () => {
      const lease = await createConnected(context.store)
      const { instanceId } = lease
      const accept = (image: string) => {
        const preview = { url: 'https://example.org', title: 'Example', image }
        return context.store.messages.accept(newMessage(instanceId, { text: 'a link', extras: { preview } }), NOW)
      }
      const { media } = await storeFile(context.store, instanceId, { expiresAt: 10 })
      expect(await accept(media.id)).toMatchObject({ kind: 'accepted' })
      expect(await context.store.media.erase(instanceId, media.id, NOW)).toBe('in_use')
      while ((await context.store.media.expire(NOW, 0)) > 0);
      expect(await context.store.media.find(instanceId, media.id)).toMatchObject({ kind: 'stored' })
      const [queued] = await context.store.messages.listQueued(instanceId, 1)
      expect(queued).toMatchObject({ text: 'a link', extras: { preview: { image: media.id } } })
      expect(queued).not.toHaveProperty('file')
      const pdf = await storeFile(context.store, instanceId, { mimetype: 'application/pdf' })
      expect(await accept(pdf.media.id)).toEqual({ kind: 'unsupported', why: 'preview' })
      const other = await createConnected(context.store)
      const stranger = await storeFile(context.store, other.instanceId)
      expect(await accept(stranger.media.id)).toEqual({ kind: 'no_media' })
    })

    test('is either accepted or erased, never both', async () => {
      for (let n = 0; n < 10; n += 1) {
        const lease = await createConnected(context.store)
        const { media } = await storeFile(context.store, lease.instanceId)
        const file = { mediaId: media.id, form: 'image', filename: null } as const
        const [accepted, erased] = await Promise.all([
          context.store.messages.accept(newMessage(lease.instanceId, { file }), NOW),
          context.store.media.erase(lease.instanceId, media.id, NOW),
        ])
        expect(accepted.kind === 'accepted').toBe(erased === 'in_use')
      }
    })
  })

  describe('a file whose upload does not end', () => {
    const context = withStore(createHarness)
    const expireWriter = (file: File) =>
      context.harness.execute(`update media_files set due_at = 1 where id = '${file.fileId}'`)

    test('is given up if nobody extends it: it can be neither extended nor finished, and frees what it reserved', async () => {
      const instanceId = await createInstance(context.store)
      const file = newFile(instanceId, QUOTA)
      await context.store.media.begin(file)
      expect(await removeDoomed(context.store, instanceId)).toEqual([])
      expect(await context.store.media.extend(file)).toBe(true)
      await expireWriter(file)
      expect(await context.store.media.claimDoomed(10)).toEqual([nameOf(file)])
      expect(await context.store.media.extend(file)).toBe(false)
      expect(await context.store.media.finish(finished(file), NOW)).toEqual({ kind: 'given_up' })
      expect(await context.store.media.discard(file)).toBe('given_up')
      await context.store.media.forget(file)
      expect(await context.store.media.discard(file)).toBe('given_up')
      expect(await context.store.media.begin(newFile(instanceId, QUOTA))).toBe('begun')
    })

    test('is claimed again a minute later if it could not be removed, and after a clock that was ahead is corrected', async () => {
      const file = newFile(await createInstance(context.store))
      await context.store.media.begin(file)
      expect(await context.store.media.discard(file)).toBe('doomed')
      expect(await context.store.media.claimDoomed(10)).toEqual([nameOf(file)])
      expect(await context.store.media.claimDoomed(10)).toEqual([])
      await expireWriter(file)
      expect(await context.store.media.claimDoomed(10)).toEqual([nameOf(file)])
      await context.harness.execute(`update media_files set due_at = due_at + 86400000 where id = '${file.fileId}'`)
      expect(await context.store.media.claimDoomed(10)).toEqual([nameOf(file)])
    })

    test('is not discarded, forgotten or given up once it is finished', async () => {
      const instanceId = await createInstance(context.store)
      const { file, media } = await storeFile(context.store, instanceId)
      expect(await context.store.media.discard(file)).toBe('stored')
      await context.store.media.forget(file)
      expect(await removeDoomed(context.store, instanceId)).toEqual([])
      expect(await context.store.media.find(instanceId, media.id)).toMatchObject({ kind: 'stored' })
      expect(await context.store.media.finish(finished(file), NOW)).toEqual({ kind: 'given_up' })
    })

    test('is given up at the next start on SQLite, where no other process can write it', async () => {
      if (context.harness.kind !== 'sqlite') return
      const own = await createHarness()
      try {
        const first = await own.open()
        const file = newFile(await createInstance(first))
        await first.media.begin(file)
        await first.close()
        const second = await own.open()
        expect(await second.media.claimDoomed(10)).toEqual([nameOf(file)])
      } finally {
        await own.dispose()
      }
    })
  })
}
