import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { TEST_WITHIN_MS } from '../../deadlines.ts'
import { until } from '../../until.ts'
import { API_MEDIA, type ApiHarness } from '../api/harness.ts'
import { filesIn, type MediaClient, png, startMediaApi } from './harness.ts'

const MIB = 1_048_576

describe('an upload', () => {
  let api: ApiHarness
  let create: () => Promise<MediaClient>
  let client: MediaClient

  beforeEach(async () => {
    ;({ api, create, client } = await startMediaApi())
  })
  afterEach(() => api[Symbol.asyncDispose]())

  async function expectNothingLeft(): Promise<void> {
    await until('nothing to be left', () => filesIn(api.mediaDir).length === 0)
    // All of the quota is free.
    await until('the quota to be free', async () => (await client.upload(png(API_MEDIA.quotaBytes))).status === 201)
  }

  test.each([
    ['larger than any file', 100 * MIB + 1, 'media_too_large'],
    ['larger than the space', API_MEDIA.quotaBytes + 1, 'media_quota_exceeded'],
  ])('whose declared size is %s is refused before its bytes arrive', async (_name, length, code) => {
    const { sent, answered } = client.open(length)
    sent.flushHeaders()
    expect(await answered).toEqual({ status: 413, code })
    sent.destroy()
  })

  test('that is too large for its declared type is refused, whatever its content is', async () => {
    const declared = client.open(16 * MIB + 1, 'Image/JPEG; x=y')
    declared.sent.flushHeaders()
    expect(await declared.answered).toEqual({ status: 413, code: 'media_too_large' })
    declared.sent.destroy()
    const chunked = client.open(null, 'image/jpeg')
    chunked.sent.on('error', () => undefined).write(Buffer.alloc(16 * MIB + 1))
    expect(await chunked.answered).toEqual({ status: 413, code: 'media_too_large' })
    chunked.sent.destroy()
    await expectNothingLeft()
  })

  test('that turns out to exceed the quota is refused, and nothing of it is left', async () => {
    const { sent, answered } = client.open(null)
    sent.write(png(API_MEDIA.quotaBytes))
    sent.end('x')
    expect(await answered).toEqual({ status: 413, code: 'media_quota_exceeded' })
    await expectNothingLeft()
  })

  test('that ends early is refused, and nothing of it is left', async () => {
    for (const length of [200_000, null]) {
      const { sent } = client.open(length)
      sent.write(png(100_000))
      await until('the file to be begun', () => filesIn(api.mediaDir).length > 0)
      sent.destroy()
      await until('the end', () => filesIn(api.mediaDir).length === 0)
    }
    await expectNothingLeft()
    expect(api.logged.filter(({ level }) => Number(level) >= 50)).toEqual([])
  })

  test('is refused while its instance has two others under way; another instance is not affected', async () => {
    const open = [client.open(1_000), client.open(1_000)]
    for (const { sent } of open) sent.write(png(500))
    const counted = async () => (await client.upload(png(100))).status === 429
    await until('both to be under way', counted)
    const refused = await client.upload(png(100))
    expect([refused.body.error.code, refused.headers.get('retry-after')]).toEqual(['too_many_transfers', '1'])
    expect((await (await create()).upload(png(100))).status).toBe(201)
    for (const { sent } of open) sent.end(Buffer.alloc(500))
    expect(await Promise.all(open.map(({ answered }) => answered))).toEqual(Array(2).fill({ status: 201 }))
    expect((await client.upload(png(100))).status).toBe(201)
  })

  test(
    'may take longer than other requests while its bytes keep coming, but not after it was refused',
    async () => {
      const slow = client.open(null)
      const refused = client.open(null)
      refused.sent.write(png(16 * MIB + 1))
      let closed = false
      refused.sent
        .on('error', () => undefined)
        .on('close', () => {
          closed = true
        })
      // Longer than the 30 s for other requests, and the 2 s until Node notices.
      for (let second = 0; second < 36; second += 1) {
        slow.sent.write(second === 0 ? png(20_000) : Buffer.alloc(20_000))
        if (!closed) refused.sent.write(Buffer.alloc(1_000))
        await sleep(1_000)
      }
      expect(await refused.answered).toEqual({ status: 413, code: 'media_too_large' })
      expect(closed).toBe(true)
      slow.sent.end()
      expect(await slow.answered).toEqual({ status: 201 })
    },
    TEST_WITHIN_MS,
  )

  test('that arrives in many small chunks is refused, and a few small ones or many larger ones do no harm', async () => {
    const inChunks = (count: number, size: number) => {
      const { sent, answered } = client.open(null)
      for (let chunk = 0; chunk < count; chunk += 1) sent.write(Buffer.alloc(size, 7))
      sent.on('error', () => undefined).end()
      return answered
    }
    expect(await inChunks(900, 1)).toEqual({ status: 201 })
    expect(await inChunks(3_000, 80)).toEqual({ status: 201 })
    expect(await inChunks(3_000, 1)).toEqual({ status: 400, code: 'invalid_request' })
  })

  test('that is empty, compressed or a form is refused', async () => {
    const body = new FormData()
    body.append('file', new Blob([png(100)]), 'a.png')
    const form = await new Response(body).blob()
    const upload = await client.upload(Buffer.from(await form.arrayBuffer()), { 'content-type': form.type })
    expect([upload.status, upload.body.error.code]).toEqual([415, 'unsupported_media_type'])
    expect(upload.body.error.message).toContain('not a form')

    expect((await client.upload(Buffer.alloc(0))).status).toBe(400)
    const { sent, answered } = client.open(null)
    sent.end()
    expect(await answered).toEqual({ status: 400, code: 'invalid_request' })
    expect((await client.upload(png(10), { 'content-encoding': 'gzip' })).status).toBe(415)
    expect((await client.upload(png(10), {}, `?filename=${'a'.repeat(256)}`)).status).toBe(400)
    expect((await client.upload(png(10), {}, '?name=a')).status).toBe(400)
  })

  test('can be read again after a caller has broken off its download, even one that read nothing', async () => {
    const { id } = (await client.upload(png(2_000_000))).body.data
    for (let n = 0; n < 12; n += 1) {
      const reading = new AbortController()
      const response = await fetch(`${api.url}/v1/media/${id}`, {
        headers: { authorization: `Bearer ${client.token}` },
        signal: reading.signal,
      })
      if (n % 2 === 0) await response.body!.getReader().read()
      reading.abort()
      await until('a free place', async () => {
        const { status } = await client.download(id, { range: 'bytes=0-0' })
        return status === 206
      })
    }
    // The place of the last download may become free a moment later than the others.
    await until('four free places', async () => {
      const four = await Promise.all(Array.from({ length: 4 }, () => client.download(id)))
      return four.every(({ status }) => status === 200)
    })
  })
})

test('without a storage no file is stored', async () => {
  const { api, client } = await startMediaApi({ options: { media: null } })
  try {
    expect((await client.upload(png(100))).body.error.code).toBe('media_not_configured')
    expect(await client.codeOf('GET', 'med_1')).toBe('media_not_configured')
    expect(await client.codeOf('DELETE', 'med_1')).toBe('media_not_configured')
  } finally {
    await api[Symbol.asyncDispose]()
  }
})
