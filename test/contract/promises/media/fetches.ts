import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { newMediaId, newMessageId, newWhatsappId } from '../../../../src/domain/ids.ts'
import { messageFailure } from '../../../../src/domain/message.ts'
import type { Lease } from '../../../../src/store/leases/leases.ts'
import { type Fetch, LONGEST_FETCH_PAUSE_MS } from '../../../../src/store/media/fetches.ts'
import type { NewMessageFile } from '../../../../src/store/messages/messages.ts'
import type { Store } from '../../../../src/store/store.ts'
import { createConnected } from '../../fixture.ts'
import type { CreateHarness, StoreHarness } from '../../harness.ts'

const QUOTA_BYTES = 1_000
const NOTHING_FULL = { instances: [], hosts: [] }

export function fetchesContract(createHarness: CreateHarness): void {
  describe('a file that is fetched from a URL', () => {
    let harness: StoreHarness
    let store: Store
    let lease: Lease

    beforeEach(async () => {
      harness = await createHarness()
      store = await harness.open()
      lease = await createConnected(store)
    })
    afterEach(() => harness.dispose())

    async function accept(url = 'https://a.example/1', file: Partial<NewMessageFile> = {}) {
      const { instanceId } = lease
      const mediaId = newMediaId(1_000)
      const message = {
        id: newMessageId(1_000),
        instanceId,
        to: '5511987654321',
        text: '',
        whatsappId: newWhatsappId(),
        file: { mediaId, form: null, filename: 'a', url, ...file },
      }
      expect(await store.messages.accept(message, 1_000)).toMatchObject({ kind: 'accepted' })
      return { mediaId, ...message }
    }

    const claim = (full: Parameters<Store['fetches']['claim']>[0] = NOTHING_FULL) => store.fetches.claim(full, 2_000)
    const fileOf = async (id: string) => (await store.messages.find(lease.instanceId, id))?.file

    async function fetched(fetch: Fetch, { mimetype = 'image/png', size = 100 } = {}) {
      const file = { instanceId: lease.instanceId, fileId: `file_${newMediaId(1_000)}` }
      await store.media.begin({ ...file, key: randomBytes(32), size, quotaBytes: QUOTA_BYTES * 10 })
      const facts = { mimetype, size, sha256: new Uint8Array(32).fill(7), expiresAt: 90_000, quotaBytes: QUOTA_BYTES }
      return store.fetches.recordFetched(fetch, { ...file, ...facts })
    }

    test('is claimed once, until it is due again', async () => {
      const { mediaId, id } = await accept()
      expect(await store.media.find(lease.instanceId, mediaId)).toEqual({ kind: 'pending' })
      expect(await fileOf(id)).toEqual({ mediaId, form: null, filename: 'a', fetch: 'pending' })
      const fetch = await claim()
      expect(fetch).toEqual({
        instanceId: lease.instanceId,
        mediaId,
        url: 'https://a.example/1',
        host: 'a.example',
        attempts: 0,
      })
      expect(await claim()).toBeNull()
      expect(await store.fetches.extend(fetch!)).toBe(true)
      expect(await store.fetches.nextInMs(NOTHING_FULL)).toBeGreaterThan(0)
      await store.fetches.recordRetry(fetch!, 3, 0)
      expect(await claim()).toEqual({ ...fetch, attempts: 3 })
    })

    test('is found behind the backlogs of other hosts and instances', async () => {
      const backlog = lease
      for (let number = 0; number < 250; number += 1) await accept(`https://slow.example/${number}`)
      const ofBacklog = await accept('https://fast.example/1')
      lease = await createConnected(store)
      const ofOther = await accept('https://slow.example/1')
      // Due later than the backlog.
      for (const { instanceId, mediaId } of [ofBacklog, ofOther])
        await harness.execute(
          `update media_fetches set due_at = due_at + 1 where instance_id = '${instanceId}' and media_id = '${mediaId}'`,
        )
      const full = { instances: [], hosts: [{ instanceId: backlog.instanceId, host: 'slow.example' }] }
      expect(await store.fetches.nextInMs(full)).toBeLessThanOrEqual(1)
      expect(await claim(full)).toMatchObject({ instanceId: lease.instanceId })
      // Of one instance only the first fetches are examined.
      expect(await claim(full)).toBeNull()
      expect(await claim({ instances: [lease.instanceId], hosts: [] })).toMatchObject({ host: 'slow.example' })
      expect(await claim({ instances: [backlog.instanceId], hosts: [] })).toBeNull()
      await harness.execute(
        `delete from media_fetches where instance_id = '${backlog.instanceId}' and media_id in (
          select media_id from media_fetches where host = 'slow.example' limit 100)`,
      )
      expect(await claim(full)).toMatchObject({ host: 'fast.example' })
    })

    test('has its bytes and the form of its type in one commit, once', async () => {
      const { mediaId, id } = await accept()
      const fetch = (await claim())!
      expect(await fetched(fetch)).toBe('stored')
      expect(await store.media.find(lease.instanceId, mediaId)).toMatchObject({
        kind: 'stored',
        media: { id: mediaId, mimetype: 'image/png', size: 100, filename: 'a' },
      })
      expect(await fileOf(id)).toEqual({ mediaId, form: 'image', filename: 'a' })
      expect(await fetched(fetch)).toBe('given_up')
      expect(await store.fetches.extend(fetch)).toBe(false)
      expect(await store.fetches.nextInMs(NOTHING_FULL)).toBeNull()
      // A queued message contains it.
      expect(await store.media.erase(lease.instanceId, mediaId, 3_000)).toBe('in_use')
    })

    test('keeps its ID although the instance has the same content already', async () => {
      const first = await accept()
      await fetched((await claim())!)
      const second = await accept()
      expect(await fetched((await claim())!)).toBe('stored')
      for (const { mediaId } of [first, second])
        expect(await store.media.find(lease.instanceId, mediaId)).toMatchObject({ media: { id: mediaId } })
    })

    test('is audio if WhatsApp would not play it as a voice note', async () => {
      const { mediaId, id } = await accept(undefined, { form: 'voice' })
      await fetched((await claim())!, { mimetype: 'audio/mpeg' })
      expect(await fileOf(id)).toEqual({ mediaId, form: 'audio', filename: 'a', notVoice: true })
    })

    test('waits for space that another file holds only until it is complete or removed', async () => {
      await accept()
      const fetch = (await claim())!
      // A killed attempt of the same fetch.
      const dead = { instanceId: lease.instanceId, fileId: `file_${newMediaId(1_000)}` }
      await store.media.begin({ ...dead, key: randomBytes(32), size: 600, quotaBytes: QUOTA_BYTES })
      expect(await fetched(fetch, { size: 600 })).toBe('busy')
    })

    test('is not stored beyond the quota', async () => {
      await accept()
      expect(await fetched((await claim())!, { size: QUOTA_BYTES + 1 })).toBe('full')
    })

    test('that is given up is gone, with the reason', async () => {
      const { mediaId, id } = await accept()
      const fetch = (await claim())!
      await store.fetches.recordFailed(fetch, 'media_too_large', 3_000)
      expect(await store.media.find(lease.instanceId, mediaId)).toEqual({ kind: 'gone', reason: 'media_too_large' })
      expect(await fileOf(id)).toMatchObject({ fetch: 'failed' })
      expect(await fetched(fetch)).toBe('given_up')
      expect(await store.fetches.nextInMs(NOTHING_FULL)).toBeNull()
    })

    test('is not fetched any more once its message has ended', async () => {
      const { mediaId, id, whatsappId } = await accept()
      await store.messages.recordFailure(lease, { id, whatsappId }, messageFailure('media_unavailable'), 2_000)
      expect(await claim()).toBeNull()
      expect(await store.media.find(lease.instanceId, mediaId)).toEqual({ kind: 'gone', reason: 'not_fetched' })
      expect(await store.fetches.nextInMs(NOTHING_FULL)).toBeNull()
    })

    test('is neither extended nor stored if its message ends meanwhile, and dropped by the next claim', async () => {
      const { mediaId, id, whatsappId } = await accept()
      const fetch = (await claim())!
      await store.messages.recordFailure(lease, { id, whatsappId }, messageFailure('media_unavailable'), 2_000)
      expect(await store.fetches.extend(fetch)).toBe(false)
      expect(await fetched(fetch)).toBe('given_up')
      await store.fetches.recordRetry(fetch, 0, 0)
      expect(await claim()).toBeNull()
      expect(await store.media.find(lease.instanceId, mediaId)).toEqual({ kind: 'gone', reason: 'not_fetched' })
    })

    test('is claimed after a clock that was ahead is corrected, and before those that wait for a retry', async () => {
      const early = await accept('https://a.example/1')
      await accept('https://b.example/1')
      await harness.execute(`update media_fetches set due_at = due_at + 86400000 where media_id = '${early.mediaId}'`)
      expect(
        await claim({ instances: [], hosts: [{ instanceId: lease.instanceId, host: 'a.example' }] }),
      ).toMatchObject({
        host: 'b.example',
      })
      expect(await store.fetches.nextInMs(NOTHING_FULL)).toBeLessThanOrEqual(0)
      const fetch = await claim()
      expect(fetch).toMatchObject({ mediaId: early.mediaId })
      // The longest pause is kept.
      await store.fetches.recordRetry(fetch!, 1, LONGEST_FETCH_PAUSE_MS)
      expect(await claim()).toBeNull()
      expect(await store.fetches.nextInMs(NOTHING_FULL)).toBeGreaterThan(0)
    })

    test('waits while its instance or its host has no place', async () => {
      const { instanceId } = lease
      await accept('https://slow.example/1')
      await accept('https://slow.example:8443/2')
      expect(await claim({ instances: [instanceId], hosts: [] })).toBeNull()
      const full = { instances: [], hosts: [{ instanceId, host: 'slow.example' }] }
      expect(await claim(full)).toMatchObject({ host: 'slow.example:8443' })
      expect(await claim(full)).toBeNull()
      expect(await claim()).toMatchObject({ host: 'slow.example' })
    })

    test('is next only if its instance and its host have a place', async () => {
      const { instanceId } = lease
      await accept('https://slow.example/1')
      await accept('https://fast.example/1')
      const full = { instances: [], hosts: [{ instanceId, host: 'slow.example' }] }
      const fast = await claim(full)
      await store.fetches.recordRetry(fast!, 1, 1_000)
      expect(await store.fetches.nextInMs(NOTHING_FULL)).toBeLessThanOrEqual(0)
      expect(await store.fetches.nextInMs(full)).toBeGreaterThan(0)
      expect(await store.fetches.nextInMs({ instances: [instanceId], hosts: [] })).toBeNull()
    })
  })
}
