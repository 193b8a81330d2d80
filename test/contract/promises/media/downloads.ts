import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { newEndpointId } from '../../../../src/domain/ids.ts'
import type { IncomingFile, MediaTerms } from '../../../../src/domain/media.ts'
import { LeaseLost } from '../../../../src/store/errors.ts'
import type { Lease } from '../../../../src/store/leases/leases.ts'
import type { Store } from '../../../../src/store/store.ts'
import { attempt, createConnected, incoming, URL } from '../../fixture.ts'
import type { CreateHarness, StoreHarness } from '../../harness.ts'

const TERMS: MediaTerms = { quotaBytes: 1_000, retentionMs: 50_000 }
const FACTS = { mimetype: 'image/png', size: 100, filename: null, seconds: null, width: 3, height: null }

export function fileOf(size = 100): IncomingFile {
  const sha256 = new Uint8Array(randomBytes(32))
  const source = {
    form: 'image' as const,
    mediaKey: new Uint8Array(randomBytes(32)),
    directPath: '/v/a',
    encSha256: new Uint8Array(randomBytes(32)),
    sha256,
    key: { id: 'A', remoteJid: '1@s.whatsapp.net', participant: null },
  }
  return { facts: { ...FACTS, size, sha256 }, source }
}

export function downloadsContract(createHarness: CreateHarness): void {
  describe('a received file', () => {
    let harness: StoreHarness
    let store: Store
    let lease: Lease

    beforeEach(async () => {
      harness = await createHarness()
      store = await harness.open()
      lease = await createConnected(store)
    })
    afterEach(() => harness.dispose())

    async function receive(
      file: IncomingFile = fileOf(),
      { id = 'A', now = 1_000, terms = TERMS as MediaTerms | null } = {},
    ) {
      await store.events.storeIncoming(lease, incoming({ id, type: 'image', file }), now, terms)
      const [event] = await bodies()
      return { id: String(event.data.media.id), messageId: String(event.data.messageId), event }
    }

    /** Newest first. */
    // biome-ignore lint/suspicious/noExplicitAny: the bodies differ by kind
    async function bodies(): Promise<any[]> {
      const page = await store.events.readFeed(lease.instanceId, { limit: 100, maxBytes: 1_000_000 })
      return page!.events.map(({ body }) => JSON.parse(body)).reverse()
    }

    async function fetched(mediaId: string, size = 100) {
      const file = { instanceId: lease.instanceId, fileId: `file_${mediaId}` }
      expect(await store.media.begin({ ...file, key: randomBytes(32), size, quotaBytes: TERMS.quotaBytes })).toBe(
        'begun',
      )
      const facts = { mimetype: 'image/jpeg', size, sha256: new Uint8Array(32).fill(7), expiresAt: 90_000 }
      return store.downloads.recordFetched(lease, mediaId, { ...file, ...facts, quotaBytes: TERMS.quotaBytes }, 2_000)
    }

    const due = async (now = 1_000_000) => (await store.downloads.listDue(lease.instanceId, now, 10)).due

    test('is listed among the files of its chat until it is gone, which is reported', async () => {
      const { instanceId } = lease
      const ids: string[] = []
      for (let now = 1_000; now <= 5_000; now += 1_000)
        ids.unshift((await receive(fileOf(), { id: `A${now}`, now })).id)
      await store.events.storeIncoming(lease, incoming({ id: 'B', text: 'without a file' }), 6_000)
      await store.events.storeIncoming(
        lease,
        incoming({ id: 'C', from: '5511900000000', file: fileOf() }),
        7_000,
        TERMS,
      )
      const list = async (limit: number) => {
        const pages: string[][] = []
        let cursor: string | undefined
        do {
          const page = await store.conversations.listFiles(instanceId, { limit, cursor }, '5511988880000')
          pages.push(page.data)
          cursor = page.nextCursor ?? undefined
        } while (cursor !== undefined)
        return pages
      }
      expect(await list(100)).toEqual([ids])
      expect(await list(2)).toEqual([[ids[0]], [ids[1], ids[2]], [ids[3], ids[4]]])
      let changes = 0
      store.hints.on('log', () => (changes += 1), instanceId)
      expect(await store.media.erase(instanceId, ids[1]!, 8_000)).toBe(true)
      expect(await store.media.erase(instanceId, ids[1]!, 8_000)).toBe(false)
      expect(changes).toBe(1)
      expect(await list(3)).toEqual([[ids[0]], [ids[2], ids[3], ids[4]]])
    })

    test('is pending with what is needed to fetch it, from the commit of its message on', async () => {
      const file = fileOf()
      const { id, messageId, event } = await receive(file)
      expect(event.data.media).toMatchObject({ mimetype: 'image/png', size: 100, width: 3 })
      expect(event.data.media).not.toHaveProperty('error')
      expect(await store.media.find(lease.instanceId, id)).toEqual({ kind: 'pending' })
      expect(await store.messages.findIncoming(lease.instanceId, messageId)).toMatchObject({
        media: { id, state: 'pending', facts: file.facts },
      })
      const [download, ...more] = await due()
      expect(more).toEqual([])
      expect(download).toMatchObject({ mediaId: id, messageId, attempts: 0, requests: 0, createdAt: 1_000 })
      expect(download!.facts).toEqual(file.facts)
      expect(download!.source).toEqual(file.source)
    })

    test('of a message that WhatsApp delivers twice is fetched once', async () => {
      await receive()
      await receive()
      expect(await due()).toHaveLength(1)
      expect(await bodies()).toHaveLength(1)
    })

    test('is ready, with its event, in one commit', async () => {
      const { id, messageId } = await receive()
      expect(await fetched(id)).toBe('stored')
      const found = await store.media.find(lease.instanceId, id)
      expect(found).toMatchObject({
        kind: 'stored',
        media: { id, mimetype: 'image/jpeg', size: 100, expiresAt: 90_000 },
      })
      expect(await due()).toEqual([])
      const [ready] = await bodies()
      expect(ready).toMatchObject({ event: 'media.ready', data: { id: 'A', messageId, media: { id, size: 100 } } })
      expect(await store.messages.findIncoming(lease.instanceId, messageId)).toMatchObject({
        media: { id, state: 'ready', facts: { mimetype: 'image/jpeg' } },
      })
    })

    test('whose row is damaged fails with its event, and holds up no other', async () => {
      const damaged = await receive(fileOf(), { id: 'A' })
      const whole = await receive(fileOf(), { id: 'B' })
      const bytes = harness.kind === 'sqlite' ? "x'00'" : "'\\x00'"
      await harness.execute(`update media_downloads set sealed_source = ${bytes} where media_id = '${damaged.id}'`)
      const listed = await store.downloads.listDue(lease.instanceId, 1_000_000, 10)
      expect(listed.due.map(({ mediaId }) => mediaId)).toEqual([whole.id])
      expect(listed.unreadable).toEqual([damaged.id])
      await store.downloads.recordFailed(lease, damaged.id, 'media_unavailable', 2_000)
      const [failed] = await bodies()
      expect(failed).toMatchObject({
        event: 'media.failed',
        data: {
          id: 'A',
          messageId: damaged.messageId,
          media: { id: damaged.id, error: { code: 'media_unavailable' } },
        },
      })
      expect(await store.downloads.listDue(lease.instanceId, 1_000_000, 10)).toMatchObject({ unreadable: [] })
    })

    test('has an ID of its own, even if the content is there already', async () => {
      const first = await receive(fileOf(), { id: 'A' })
      const second = await receive(fileOf(), { id: 'B' })
      expect([await fetched(first.id), await fetched(second.id)]).toEqual(['stored', 'stored'])
      await store.media.erase(lease.instanceId, first.id, 3_000)
      expect((await store.media.find(lease.instanceId, second.id))?.kind).toBe('stored')
    })

    test('is tried again when it is due, with what is known by then', async () => {
      const { id } = await receive()
      const [download] = await due()
      const source = { ...download!.source, directPath: '/v/new' }
      await store.downloads.recordRetry(lease, id, { ...download!, source, attempts: 2, requests: 1, dueAt: 5_000 })
      expect(await store.downloads.listDue(lease.instanceId, 4_999, 10)).toEqual({
        due: [],
        unreadable: [],
        nextAt: 5_000,
      })
      expect((await due(5_000))[0]).toMatchObject({ attempts: 2, requests: 1, source: { directPath: '/v/new' } })
    })

    test('is due after a clock that was ahead is corrected', async () => {
      const hour = 3_600_000
      const { id } = await receive()
      const [download] = await due()
      const listed = async (more: { requests: number; dueAt: number }) => {
        await store.downloads.recordRetry(lease, id, { ...download!, attempts: 2, ...more })
        return (await due(1_000)).length
      }
      expect(await listed({ requests: 0, dueAt: 1_000 + hour })).toBe(0)
      expect(await listed({ requests: 0, dueAt: 10_000 + hour })).toBe(1)
      expect(await listed({ requests: 1, dueAt: 1_000 + 12 * hour })).toBe(0)
      expect(await listed({ requests: 1, dueAt: 10_000 + 12 * hour })).toBe(1)
    })

    test('that is given up says why', async () => {
      const { id, messageId } = await receive()
      await store.downloads.recordFailed(lease, id, 'media_damaged', 2_000)
      await store.downloads.recordFailed(lease, id, 'media_unavailable', 3_000)
      expect(await store.media.find(lease.instanceId, id)).toEqual({ kind: 'gone', reason: 'media_damaged' })
      const [failed, , ...more] = await bodies()
      expect(more).toEqual([])
      expect(failed).toMatchObject({ event: 'media.failed', data: { media: { error: { code: 'media_damaged' } } } })
      expect(await store.messages.findIncoming(lease.instanceId, messageId)).toMatchObject({
        media: { state: 'media_damaged' },
      })
      expect(await due()).toEqual([])
    })

    test.each([
      ['media_not_configured', fileOf(), null],
      ['media_unavailable', { ...fileOf(), source: null }, TERMS],
      ['media_too_large', fileOf(17 * 1_048_576), TERMS],
      ['media_quota_exceeded', fileOf(1_001), TERMS],
    ] as const)('that will not be fetched is an event that says so: %s', async (code, file, terms) => {
      const { id, event } = await receive(file, { terms })
      expect(event.data.media.error.code).toBe(code)
      expect(await store.media.find(lease.instanceId, id)).toEqual({ kind: 'gone', reason: code })
      expect(await due()).toEqual([])
    })

    test('does not exceed the quota, whatever its message states', async () => {
      const { id } = await receive(fileOf(1))
      const file = { instanceId: lease.instanceId, fileId: 'file_big' }
      await store.media.begin({ ...file, key: randomBytes(32), size: 1, quotaBytes: 1_000 })
      const facts = { mimetype: 'image/jpeg', size: 2_000, sha256: new Uint8Array(32), expiresAt: 9 }
      const outcome = await store.downloads.recordFetched(lease, id, { ...file, ...facts, quotaBytes: 1_000 }, 2_000)
      expect(outcome).toBe('full')
      expect(await due()).toHaveLength(1)
    })

    test('waits for space that another file holds only until it is complete or removed', async () => {
      const { instanceId } = lease
      const { id } = await receive(fileOf(600))
      const file = { key: randomBytes(32), size: 600, quotaBytes: 1_000 }
      // A killed fetch of the same file.
      const dead = { instanceId, fileId: 'file_dead' }
      expect(await store.media.begin({ ...dead, ...file })).toBe('begun')
      expect(await store.media.begin({ ...file, instanceId, fileId: 'file_again' })).toBe('busy')
      const own = { instanceId, fileId: 'file_own' }
      expect(await store.media.begin({ ...own, ...file, size: 1 })).toBe('begun')
      const facts = { mimetype: 'image/jpeg', size: 600, sha256: new Uint8Array(32), expiresAt: 9, quotaBytes: 1_000 }
      const recordFetched = () => store.downloads.recordFetched(lease, id, { ...own, ...facts }, 2_000)
      expect(await recordFetched()).toBe('busy')
      await store.media.discard(dead)
      expect(await recordFetched()).toBe('busy')
      await store.media.forget(dead)
      expect(await recordFetched()).toBe('stored')
      expect(await store.media.begin({ ...file, instanceId, fileId: 'file_more' })).toBe('full')
    })

    test('that is pending does not let uploads of its size exceed the quota', async () => {
      await receive(fileOf(600))
      const file = { instanceId: lease.instanceId, key: randomBytes(32), size: 600, quotaBytes: 1_000 }
      expect(await store.media.begin({ ...file, fileId: 'file_1' })).toBe('begun')
      expect(await store.media.begin({ ...file, fileId: 'file_2' })).toBe('busy')
      expect(await store.media.discard({ ...file, fileId: 'file_1' })).toBe('doomed')
      expect(await store.media.discard({ ...file, fileId: 'file_1' })).toBe('given_up')
      await store.media.forget({ ...file, fileId: 'file_1' })
      expect(await store.media.begin({ ...file, fileId: 'file_2' })).toBe('begun')
    })

    test('stays erased if a node of the previous version erased it and left its download', async () => {
      const { id } = await receive()
      await harness.execute(`update media set gone_at = 1500, gone_reason = 'erased' where id = '${id}'`)
      expect(await fetched(id)).toBe('given_up')
      expect(await due()).toEqual([])
      expect(await store.media.find(lease.instanceId, id)).toEqual({ kind: 'gone', reason: 'erased' })
      expect((await bodies()).map(({ event }) => event)).toEqual(['message.received'])
    })

    test('that was erased before it was fetched stays erased', async () => {
      const { id } = await receive()
      expect(await store.media.erase(lease.instanceId, id, 2_000)).toBe(true)
      expect(await due()).toEqual([])
      expect(await fetched(id)).toBe('given_up')
      await store.downloads.recordFailed(lease, id, 'media_damaged', 3_000)
      expect(await store.media.find(lease.instanceId, id)).toEqual({ kind: 'gone', reason: 'erased' })
      expect(await bodies()).toHaveLength(1)
    })

    test('does not expire while it is being fetched, and expires like others when it is stored', async () => {
      const { id } = await receive()
      expect(await store.media.expire(1_000_000, 0)).toBe(0)
      await fetched(id)
      expect(await store.media.expire(1_000_000, 0)).toBe(1)
      expect(await store.media.find(lease.instanceId, id)).toEqual({ kind: 'gone', reason: 'expired' })
    })

    test('is recorded by the owner of the instance only', async () => {
      const { id } = await receive()
      const former = { ...lease, epoch: lease.epoch - 1 }
      await expect(store.downloads.recordFailed(former, id, 'media_damaged', 1)).rejects.toThrow(LeaseLost)
      expect(await due()).toHaveLength(1)
    })

    test('is posted after its message', async () => {
      const endpoint = { instanceId: lease.instanceId, id: newEndpointId(), secret: 'whsec_b3RoZXI=', events: ['*'] }
      await store.endpoints.create({ ...endpoint, url: URL, active: true, description: null }, 1_000)
      const { id } = await receive()
      await fetched(id)
      const ready = async () => {
        const deliveries = await store.deliveries.listFirst(lease.instanceId, 0, 100, endpoint.id)
        return deliveries.map(({ kind }) => kind)
      }
      expect(await ready()).toEqual(['message.received'])
      const [message] = await store.deliveries.listFirst(lease.instanceId, 0, 100, endpoint.id)
      await store.deliveries.recordAttempt(lease, message!, attempt(message!), { kind: 'delivered' })
      expect(await ready()).toEqual(['media.ready'])
    })
  })
}
