import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Lease } from '../../../../src/store/leases/leases.ts'
import type { Store } from '../../../../src/store/store.ts'
import { accept, createConnected, deliverAll, incoming } from '../../fixture.ts'
import type { CreateHarness, StoreHarness } from '../../harness.ts'
import { fileOf } from '../media/downloads.ts'

const THEM = '5511987654321'
const OTHER = '5511911112222'
const QUOTA = 1_000
const DAY_MS = 86_400_000

export function filesOfContactsContract(createHarness: CreateHarness): void {
  describe('a file received from a contact', () => {
    let harness: StoreHarness
    let store: Store
    let lease: Lease

    beforeEach(async () => {
      harness = await createHarness()
      store = await harness.open()
      lease = await createConnected(store)
    })
    afterEach(() => harness.dispose())

    /** Receives a message with a file, and the file. @returns the ID of the file */
    async function receive(now: number, retentionMs = 30 * DAY_MS): Promise<string> {
      const { instanceId } = lease
      const message = incoming({ from: THEM, type: 'image', text: 'a caption', file: fileOf() })
      await store.events.storeIncoming(lease, message, now, { quotaBytes: QUOTA, retentionMs })
      const [download] = (await store.downloads.listDue(instanceId, Date.now(), 10)).due
      const { mediaId } = download!
      const file = { instanceId, fileId: `file_${mediaId}` }
      await store.media.begin({ ...file, key: randomBytes(32), size: 100, quotaBytes: QUOTA })
      const facts = { mimetype: 'image/png', size: 100, sha256: new Uint8Array(32).fill(7) }
      const fetched = { ...file, ...facts, expiresAt: now + retentionMs, quotaBytes: QUOTA }
      await store.downloads.recordFetched(lease, mediaId, fetched, now)
      await deliverAll(store, lease)
      return mediaId
    }

    const kindOf = async (mediaId: string) => (await store.media.find(lease.instanceId, mediaId))?.kind

    test('stays, with its message and events, while a queued message contains it', async () => {
      const { instanceId } = lease
      const now = Date.now()
      const mediaId = await receive(now)
      const file = { mediaId, form: 'image', filename: null } as const
      await accept(store, instanceId, { to: OTHER, text: '', file })
      const nothing = { messages: 0, events: 0, files: 0 }
      expect(await store.retention.eraseContact(instanceId, THEM, now)).toEqual({ ...nothing, kept: 1 })
      expect(await kindOf(mediaId)).toBe('stored')
      expect(JSON.stringify(await harness.execute('select text from incoming_messages'))).toContain('a caption')

      await store.messages.recordQueueFailed(lease, { code: 'expired', message: 'Too old.' }, now, 100)
      expect(await store.retention.eraseContact(instanceId, THEM, now)).toMatchObject({
        messages: 1,
        files: 1,
        kept: 0,
      })
      expect(await kindOf(mediaId)).toBe('gone')
    })

    test.each(['with its contact', 'with its chat', 'at its end'])(
      'keeps its message beyond the retention of messages, until it is erased %s',
      async how => {
        const { instanceId } = lease
        const now = Date.now()
        const mediaId = await receive(now - 10 * DAY_MS)
        const without = incoming({ from: THEM, text: 'without a file' })
        await store.events.storeIncoming(lease, without, now - 10 * DAY_MS)
        await deliverAll(store, lease)
        const eraseOld = async () => {
          while ((await store.retention.step(now - 7 * DAY_MS, now)) > 0);
        }
        const texts = async () => (await harness.execute('select text from incoming_messages')).map(({ text }) => text)
        await eraseOld()
        expect(await texts()).toEqual([JSON.stringify('a caption')])
        const { messages } = await store.retention.openContact(instanceId, THEM, now)
        for await (const message of messages()) expect(message.mediaId).toBe(mediaId)
        const { data } = await store.conversations.listFiles(instanceId, { limit: 10 }, THEM)
        expect(data).toEqual([mediaId])

        if (how === 'with its contact')
          expect(await store.retention.eraseContact(instanceId, THEM, now)).toMatchObject({ files: 1, kept: 0 })
        else if (how === 'with its chat') await store.media.erase(instanceId, mediaId, now)
        else while ((await store.media.expire(now + 30 * DAY_MS, 0)) > 0);
        expect(await kindOf(mediaId)).toBe('gone')
        await eraseOld()
        expect(await texts()).toEqual([])
        expect(await harness.execute('select id from events')).toEqual([])
      },
    )
  })
}
