import { pino } from 'pino'
import { afterEach, describe, expect, test, vi } from 'vitest'
import type { FileSource, ReceivingFailure } from '../../domain/media.ts'
import { Refusal } from '../../domain/refusal.ts'
import { Turns } from '../../kit/turns.ts'
import type { Download, Downloads as DownloadRows } from '../../store/media/downloads.ts'
import { AlteredFile } from '../baileys/media/cipher.ts'
import { DownloadFailed } from '../baileys/media/download.ts'
import type { ReUpload } from '../baileys/media/re-upload.ts'
import { Downloads } from './downloads.ts'

const HOUR_MS = 3_600_000
const BYTES = new Uint8Array(32)
const SOURCE: FileSource = {
  form: 'image',
  mediaKey: BYTES,
  directPath: '/old',
  encSha256: BYTES,
  sha256: BYTES,
  key: { id: 'A', remoteJid: 'b@s.whatsapp.net', participant: null },
}
const FACTS = {
  mimetype: 'image/png',
  size: 1,
  sha256: BYTES,
  filename: null,
  seconds: null,
  width: null,
  height: null,
}

type Answer = (path: string) => Promise<'stored' | 'full' | 'busy'>

/** Rows in memory, on a fake clock. Each test decides how a fetch ends. */
class World {
  readonly rows = new Map<string, Download & { dueAt: number }>()
  readonly ended = new Map<string, 'stored' | ReceivingFailure>()
  readonly fetches: string[] = []
  fetching = 0
  most = 0
  requests = 0
  reads = 0
  fetch: Answer = async () => 'stored'
  phone: () => Promise<ReUpload> = async () => ({ kind: 'refused' })
  readonly stopped = new AbortController()
  readonly linkClosed = new AbortController()
  readonly downloads: Downloads

  constructor() {
    vi.useFakeTimers({ now: 0 })
    const store: DownloadRows = {
      listDue: async (_, now, limit) => {
        this.reads += 1
        const rows = [...this.rows.values()].toSorted((a, b) => a.dueAt - b.dueAt)
        const due = rows.filter(row => row.dueAt <= now).slice(0, limit)
        return { due, unreadable: [], nextAt: rows[due.length]?.dueAt ?? null }
      },
      recordFetched: async () => 'stored',
      recordRetry: async (_, mediaId, next) => {
        const row = this.rows.get(mediaId)
        if (row) this.rows.set(mediaId, { ...row, ...next })
      },
      recordFailed: async (_, mediaId, failure) => this.#end(mediaId, failure),
    }
    this.downloads = new Downloads({
      lease: { instanceId: 'inst_1', owner: 'node', epoch: 1 },
      store: { downloads: store },
      receiver: {
        terms: { quotaBytes: 1, retentionMs: 1 },
        receive: (_, { mimetype }, bytes) => this.#receive(mimetype, bytes as unknown as FileSource),
      },
      turns: new Turns(100),
      logger: pino({ level: 'silent' }),
      now: Date.now,
      signal: this.stopped.signal,
      onFailed: error => {
        throw error
      },
    })
  }

  add(mediaId: string, chat = mediaId): void {
    const times = { createdAt: Date.now(), dueAt: Date.now() }
    // The media type identifies the file to `#receive`.
    const facts = { ...FACTS, mimetype: mediaId }
    this.rows.set(mediaId, {
      mediaId,
      messageId: 'm',
      chat,
      attempts: 0,
      requests: 0,
      facts,
      source: SOURCE,
      ...times,
    })
    this.downloads.wake()
  }

  connect(): void {
    const files = {
      download: (source: FileSource) => source as unknown as AsyncIterable<Uint8Array>,
      requestReUpload: async () => {
        this.requests += 1
        return this.phone()
      },
    }
    this.downloads.attach({ closed: this.linkClosed.signal, files })
  }

  async pass(ms: number): Promise<void> {
    await vi.advanceTimersByTimeAsync(ms)
  }

  async #receive(mediaId: string, { directPath }: FileSource) {
    this.fetches.push(directPath)
    this.fetching += 1
    this.most = Math.max(this.most, this.fetching)
    try {
      const outcome = await this.fetch(directPath)
      if (outcome === 'stored') this.#end(mediaId, 'stored')
      return outcome
    } finally {
      this.fetching -= 1
    }
  }

  #end(mediaId: string, how: 'stored' | ReceivingFailure): void {
    if (this.rows.delete(mediaId)) this.ended.set(mediaId, how)
  }
}

let world: World
afterEach(async () => {
  world.stopped.abort()
  world.linkClosed.abort()
  await world.downloads.stop()
  vi.useRealTimers()
})

const fail =
  (error: Error): Answer =>
  async () => {
    throw error
  }

describe('received files', () => {
  test('are fetched three at a time, as soon as there is a link', async () => {
    world = new World()
    const done = Promise.withResolvers<'stored'>()
    world.fetch = () => done.promise
    for (let n = 0; n < 10; n += 1) world.add(`f${n}`)
    await world.pass(600_000)
    expect(world.fetches).toEqual([])
    expect(world.reads).toBeLessThan(40)
    world.connect()
    await world.pass(600_000)
    expect(world.fetching).toBe(3)
    expect(world.reads).toBeLessThan(80)
    done.resolve('stored')
    await world.pass(1)
    expect([world.ended.size, world.most]).toEqual([10, 3])
  })

  test.each([
    ['the media host is away', new DownloadFailed('500', 'unavailable')],
    ['the disk is full', Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' })],
  ])('are tried again ever more rarely while %s, and given up after three days', async (_, error) => {
    world = new World()
    world.fetch = fail(error)
    world.add('f')
    world.connect()
    await world.pass(HOUR_MS)
    const first = world.fetches.length
    expect(first).toBeGreaterThan(8)
    expect(first).toBeLessThan(15)
    await world.pass(HOUR_MS * 70)
    expect(world.ended.size).toBe(0)
    await world.pass(HOUR_MS * 3)
    expect(world.ended.get('f')).toBe('media_unavailable')
    expect(world.fetches.length).toBeLessThan(100)
  })

  test('are fetched soon after the cause of the failure has ended', async () => {
    world = new World()
    world.fetch = fail(new DownloadFailed('500', 'unavailable'))
    world.add('f')
    world.connect()
    await world.pass(20_000)
    world.fetch = async () => 'stored'
    await world.pass(20_000)
    expect(world.ended.get('f')).toBe('stored')
  })

  test('that are gone are fetched from where the phone uploaded them', async () => {
    world = new World()
    world.fetch = path => (path === '/new' ? Promise.resolve('stored') : fail(new DownloadFailed('404', 'gone'))(path))
    world.phone = async () => ({ kind: 'uploaded', directPath: '/new' })
    world.add('f')
    world.connect()
    await world.pass(10)
    expect([world.fetches, world.ended.get('f')]).toEqual([['/old', '/new'], 'stored'])
  })

  test('that only some media hosts lack are tried again although the phone refuses', async () => {
    world = new World()
    world.fetch = fail(new DownloadFailed('404', 'maybe_gone'))
    world.add('f')
    world.connect()
    await world.pass(60_000)
    expect([world.requests, world.ended.size]).toEqual([1, 0])
    world.fetch = async () => 'stored'
    await world.pass(600_000)
    expect(world.ended.get('f')).toBe('stored')
    world.fetch = fail(new DownloadFailed('404', 'maybe_gone'))
    world.add('never')
    await world.pass(80 * HOUR_MS)
    expect(world.ended.get('never')).toBe('media_unavailable')
  })

  test('whose phone is off are requested until they are three days old, and delay no other file', async () => {
    world = new World()
    world.fetch = path => (path === '/old' ? fail(new DownloadFailed('404', 'gone'))(path) : Promise.resolve('stored'))
    world.phone = () => new Promise(resolve => setTimeout(() => resolve({ kind: 'unanswered' }), 60_000))
    for (let n = 0; n < 30; n += 1) world.add(`f${n}`)
    world.connect()
    await world.pass(10)
    expect(world.requests).toBe(16)
    world.rows.set('other', {
      ...world.rows.get('f0')!,
      mediaId: 'other',
      dueAt: 0,
      facts: { ...FACTS, mimetype: 'other' },
      source: { ...SOURCE, directPath: '/there' },
    })
    world.downloads.wake()
    await world.pass(10)
    expect(world.ended.get('other')).toBe('stored')
    await world.pass(80 * HOUR_MS)
    expect(world.requests).toBeLessThan(30 * 15)
    expect(new Set(world.ended.values())).toEqual(new Set(['stored', 'media_unavailable']))
    expect(world.ended.size).toBe(31)
  })

  test('of one chat leave places for requests to the other chats', async () => {
    world = new World()
    world.fetch = fail(new DownloadFailed('404', 'gone'))
    world.phone = () => new Promise(resolve => setTimeout(() => resolve({ kind: 'unanswered' }), 60_000))
    for (let n = 0; n < 30; n += 1) world.add(`f${n}`, 'noisy')
    world.add('other')
    world.connect()
    await world.pass(10)
    expect(world.requests).toBe(5)
    // The other files of the chat wait longer and longer for a place, instead of being fetched again and again.
    await world.pass(600_000)
    expect(world.fetches.length).toBeLessThan(31 * 12)
  })

  test('whose phone refuses immediately cause few requests', async () => {
    world = new World()
    world.fetch = fail(new DownloadFailed('404', 'gone'))
    for (let n = 0; n < 200; n += 1) world.add(`f${n}`, 'noisy')
    world.connect()
    await world.pass(60_000)
    expect(world.requests).toBeLessThanOrEqual(4 * 7)
  })

  test.each([
    ['the quota is full', async () => 'full', 'media_quota_exceeded'],
    ['they are too large', fail(new Refusal('media_too_large')), 'media_too_large'],
    ['they have no end', fail(new DownloadFailed('x', 'too_large')), 'media_too_large'],
    ['they are empty', fail(new Refusal('invalid_request')), 'media_damaged'],
  ] as [string, Answer, ReceivingFailure][])('are given up at once if %s', async (_, fetch, failure) => {
    world = new World()
    world.fetch = fetch
    world.add('f')
    world.connect()
    await world.pass(10)
    expect([world.ended.get('f'), world.fetches.length]).toEqual([failure, 1])
  })

  test('that wait for space are tried again, and given up after three days', async () => {
    world = new World()
    world.fetch = async () => 'busy'
    world.add('early')
    world.connect()
    await world.pass(HOUR_MS)
    expect(world.ended.size).toBe(0)
    world.fetch = async () => 'stored'
    await world.pass(HOUR_MS)
    expect(world.ended.get('early')).toBe('stored')
    world.fetch = async () => 'busy'
    world.add('late')
    await world.pass(73 * HOUR_MS)
    expect(world.ended.get('late')).toBe('media_unavailable')
  })

  test('with wrong bytes are fetched twice, requested once, fetched twice again and given up', async () => {
    world = new World()
    world.fetch = fail(new AlteredFile('x'))
    world.phone = async () => ({ kind: 'uploaded', directPath: '/new' })
    world.add('f')
    world.connect()
    await world.pass(60_000)
    expect([world.ended.get('f'), world.fetches]).toEqual(['media_damaged', ['/old', '/old', '/new', '/new']])
  })

  test('stay as they are when the link closes', async () => {
    world = new World()
    world.fetch = async () => {
      world.linkClosed.abort()
      world.downloads.detach()
      throw new DownloadFailed('closed', 'unavailable')
    }
    world.add('f')
    world.connect()
    await world.pass(60_000)
    expect([world.rows.get('f')?.attempts, world.fetches.length]).toEqual([0, 1])
  })
})
