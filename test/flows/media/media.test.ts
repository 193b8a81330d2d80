import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import fc from 'fast-check'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { InstanceId } from '../../../src/domain/ids.ts'
import { openMedia } from '../../../src/media/open-media.ts'
import { ONE_STORE } from '../../databases/one-store.ts'
import { until } from '../../until.ts'
import { API_MEDIA, type ApiHarness } from '../api/harness.ts'
import { filesIn, MediaClient, png, sha256, startMediaApi } from './harness.ts'

const DAY_MS = 86_400_000

describe.each(ONE_STORE)('files on %s', on => {
  let api: ApiHarness
  let create: () => Promise<MediaClient>
  let client: MediaClient

  beforeAll(async () => {
    ;({ api, create, client } = await startMediaApi({ on }))
  })
  afterAll(() => api[Symbol.asyncDispose]())

  /** The files in the storage, of all instances. */
  const stored = () => filesIn(api.mediaDir)

  test('come back as they were uploaded', async () => {
    const bytes = png(200_000)
    const { status, body } = await client.upload(bytes, { 'content-type': 'text/html' }, '?filename=Caf%C3%A9.png')
    expect(status).toBe(201)
    expect(body.data).toEqual({
      id: expect.stringMatching(/^med_[0-9a-z]{26}$/),
      mimetype: 'image/png',
      size: bytes.length,
      sha256: sha256(bytes),
      filename: 'Café.png',
      expiresAt: expect.any(String),
    })
    expect(Math.abs(Date.parse(body.data.expiresAt) - Date.now() - 30 * DAY_MS)).toBeLessThan(60_000)
    const response = await client.call('GET', body.data.id)
    expect(response.status).toBe(200)
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'image/png',
      'content-length': '200000',
      'content-disposition': `attachment; filename="Caf_.png"; filename*=UTF-8''Caf%C3%A9.png`,
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'; sandbox",
      'cache-control': 'no-store',
      'accept-ranges': 'bytes',
    })
    expect(Buffer.from(await response.arrayBuffer()).equals(bytes)).toBe(true)
  })

  test('are read to the end while the same content is uploaded again', async () => {
    const [bytes, kept] = [png(300_000), stored().length]
    const instance = await api.createInstance()
    const client = new MediaClient(api.url, instance)
    const { id } = (await client.upload(bytes)).body.data
    const place = { kind: 'folder', path: api.mediaDir } as const
    const shared = { place, store: api.store, ownPorts: [], version: '1.2.3', logger: pino({ level: 'silent' }) }
    const other = await openMedia({ ...API_MEDIA, ...shared })
    try {
      const found = await other.library.open(instance.id as InstanceId, id)
      expect((await client.upload(bytes)).body.data.id).toBe(id)
      await until('the former file to be removed', () => stored().length === kept + 1)
      const parts: Uint8Array[] = []
      for await (const part of await found.read({ from: 0, to: bytes.length - 1 })) parts.push(part)
      expect(Buffer.concat(parts).equals(bytes)).toBe(true)
    } finally {
      await other.close()
    }
  })

  test('are encrypted in the storage', async () => {
    const bytes = Buffer.from('a secret that is long enough to be found '.repeat(5_000))
    await client.upload(bytes)
    for (const file of stored()) expect(readFileSync(file).includes('a secret')).toBe(false)
  })

  test('can be resumed by range, and are not sent again to a caller who has them', async () => {
    const bytes = png(150_000)
    const { id } = (await client.upload(bytes)).body.data
    const ranges = fc.asyncProperty(fc.nat(149_999), fc.nat(160_000), async (a, b) => {
      const [from, to] = [Math.min(a, b), Math.max(a, b)]
      const part = await client.download(id, { range: `bytes=${from}-${to}` })
      expect(part.status).toBe(206)
      expect(part.bytes.equals(bytes.subarray(from, to + 1))).toBe(true)
    })
    await fc.assert(ranges, { numRuns: 15 })
    const last = await client.call('GET', id, { range: 'bytes=-1' })
    expect(last.headers.get('content-range')).toBe('bytes 149999-149999/150000')
    const etag = last.headers.get('etag')!
    await last.arrayBuffer()
    expect((await client.download(id, { range: 'bytes=5-', 'if-range': '"other"' })).status).toBe(200)
    expect((await client.download(id, { range: 'bytes=5-', 'if-range': etag })).status).toBe(206)
    const known = await client.call('GET', id, { 'if-none-match': etag })
    expect([known.status, known.headers.get('etag'), await known.text()]).toEqual([304, etag, ''])
    // A cache would apply these headers of a 304 to the file that it has stored.
    expect([known.headers.get('content-length'), known.headers.get('content-type')]).toEqual([null, null])
    const beyond = await client.call('GET', id, { range: 'bytes=150000-' })
    expect([beyond.status, beyond.headers.get('content-range')]).toEqual([416, 'bytes */150000'])
    expect(await beyond.json()).toMatchObject({ error: { code: 'range_not_satisfiable' } })
    for (const range of [undefined, 'bytes=5-9', 'bytes=150000-']) {
      const head = await client.call('HEAD', id, range ? { range } : {})
      expect([head.status, head.headers.get('content-length'), await head.text()]).toEqual([200, '150000', ''])
      expect(head.headers.get('content-range')).toBeNull()
    }
  })

  test('with the same content are one file with the later expiry; files of another instance do not exist', async () => {
    const bytes = png(10_000)
    const first = (await client.upload(bytes)).body.data
    const second = (await client.upload(bytes)).body.data
    expect(second.id).toBe(first.id)
    expect(Date.parse(second.expiresAt)).toBeGreaterThanOrEqual(Date.parse(first.expiresAt))
    const stranger = await create()
    expect(await stranger.codeOf('GET', first.id)).toBe('media_not_found')
    expect(await stranger.codeOf('DELETE', first.id)).toBe('media_not_found')
    expect((await stranger.upload(bytes)).body.data.id).not.toBe(first.id)
    expect((await client.download(first.id)).bytes.equals(bytes)).toBe(true)
  })

  test('that are erased are gone immediately, and their bytes soon after', async () => {
    const own = await create()
    const before = stored().length
    const { id } = (await own.upload(png(5_000))).body.data
    expect(stored().length).toBe(before + 1)
    expect((await own.call('DELETE', id)).status).toBe(204)
    expect(await own.codeOf('GET', id)).toBe('media_gone')
    expect(await own.codeOf('DELETE', id)).toBe('media_gone')
    await until('the file to be removed', () => stored().length === before)
    expect(await own.codeOf('GET', 'med_00000000000000000000000000')).toBe('media_not_found')
    expect(await own.codeOf('GET', '..%2F..%2Fadmin.key')).toBe('media_not_found')
  })

  test('that are missing or damaged in the storage are gone until they are uploaded again', async () => {
    const own = await create()
    const bytes = png(90_000)
    const known = new Set(stored())
    const { id } = (await own.upload(bytes)).body.data
    const file = stored().find(path => !known.has(path))!
    const content = readFileSync(file)
    content[70_000]! ^= 1
    writeFileSync(file, content)
    // The first chunk is intact: the answer has begun when the damage is found.
    await expect(own.download(id)).rejects.toThrow()
    expect((await own.download(id, { range: 'bytes=0-100' })).status).toBe(206)
    expect((await own.download(id, { range: 'bytes=80000-' })).status).toBe(410)
    rmSync(file)
    expect(await own.codeOf('GET', id)).toBe('media_gone')
    expect((await own.upload(bytes)).body.data.id).toBe(id)
    expect((await own.download(id)).bytes.equals(bytes)).toBe(true)
  })

  test.each([
    ['a text', Buffer.from('hello'), 'text/plain; charset=utf-8', 'text/plain'],
    ['a JSON document', Buffer.from('{"a":1}'), 'application/json', 'application/json'],
    ['a page that claims to be a picture', Buffer.from('<script>'), 'image/png', 'application/octet-stream'],
    ['a text that curl sends', Buffer.from('hi'), 'application/x-www-form-urlencoded', 'application/octet-stream'],
    ['a PDF without a type', Buffer.from('%PDF-1.7\n%\n'), undefined, 'application/pdf'],
  ])('%s gets its type', async (_name, bytes, type, expected) => {
    const { status, body } = await client.upload(bytes, type === undefined ? {} : { 'content-type': type })
    expect([status, body.data?.mimetype]).toEqual([201, expected])
    const response = await client.call('GET', body.data.id)
    expect([response.headers.get('content-type'), await response.text()]).toEqual([expected, bytes.toString()])
  })

  test('of any bytes, names and types are refused, or stored and returned unchanged', async () => {
    const own = await create()
    const starts = fc.constantFrom(
      ...['', '504b0304', '1f8b08', '3026b2758e66cf11', '52494646', '00000018667479706d703432', '4f676753', 'ffd8ffe0'],
    )
    const contents = fc
      .tuple(starts, fc.uint8Array({ maxLength: 3_000 }))
      .map(([start, rest]) => Buffer.concat([Buffer.from(start, 'hex'), rest]))
    const names = fc.string({ unit: 'grapheme', maxLength: 300 })
    const types = fc.oneof(fc.constantFrom('image/png', 'x/y'), fc.stringMatching(/^[!-~]{1,20}\/[!-~]{1,20}$/))
    const property = fc.asyncProperty(contents, names, types, async (bytes, name, type) => {
      const answer = await own.upload(bytes, { 'content-type': type }, `?filename=${encodeURIComponent(name)}`)
      const code = answer.body.error?.code
      if (code === 'unsupported_media_type') return
      if (bytes.length === 0 || name.length > 255) {
        expect(code).toBe('invalid_request')
        return
      }
      expect(answer.status, answer.text).toBe(201)
      const response = await own.call('GET', answer.body.data.id)
      expect(Buffer.from(await response.arrayBuffer()).equals(bytes)).toBe(true)
      expect(response.headers.get('content-type')).toBe(answer.body.data.mimetype)
    })
    await fc.assert(property, { numRuns: 60 })
  })
})
