import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { gzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { ApiError } from '../../api-client.ts'
import { LONG_TEST_WITHIN_MS } from '../../deadlines.ts'
import { LinkedHarness, type LinkedNumber } from '../../linked-harness.ts'
import { newSeed, Random } from '../../rig/random.ts'
import { until } from '../../until.ts'
import { endless, FileHost } from './file-host.ts'
import { MediaClient, sha256 } from './harness.ts'
import { sampleFile } from './sample-files.ts'

const KILLS = 4
const KILL_WITHIN_MS = 500

describe.each(['sqlite', 'postgres'] as const)('files from URLs (%s)', store => {
  let harness: LinkedHarness
  let number: LinkedNumber
  let host: FileHost
  let otherHost: FileHost
  /** Not named in MEDIA_ALLOWED_NETWORKS. */
  let forbidden: FileHost
  let folder: string
  let contacts = 0
  const nextContact = () => `55119870${String(++contacts).padStart(5, '0')}`

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'pombal-urls-'))
    ;[host, otherHost, forbidden] = await Promise.all([FileHost.listen(), FileHost.listen(), FileHost.listen()])
    harness = await LinkedHarness.open(store, {
      env: {
        MEDIA_URL: pathToFileURL(folder).href,
        MEDIA_ALLOWED_NETWORKS: `127.0.0.1:${host.port},127.0.0.0/8:${otherHost.port}`,
      },
    })
    number = await harness.link()
  })
  afterAll(async () => {
    await harness?.[Symbol.asyncDispose]()
    for (const each of [host, otherHost, forbidden]) await each?.[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  })
  afterEach(() => expect(forbidden.connections).toBe(0))

  const send = (to: string, url: string, more: object = {}, by = number) =>
    by.instance.sendMedia({ to, media: { url }, ...more }, sha256(Buffer.from(`${to} ${url}`)))
  const becomes = (id: string, by = number) =>
    until(`${id} to be read or failed`, async () => {
      const found = await by.instance.message(id)
      return ['read', 'failed'].includes(found.status) && found
    })
  const shownTo = async (to: string) => (await harness.network.inbox(to)).map(({ media }) => media?.sha256)

  test('a file arrives as it was, with the type of its content and the name in its URL', async () => {
    const { bytes, mimetype } = sampleFile('image', 300_000)
    const url = host.file('/a%20b.png?signature=1', bytes, { 'content-type': 'text/html' })
    const to = nextContact()
    const { id } = await send(to, url, { caption: 'um recado' })
    const found = await becomes(id)
    expect(found).toMatchObject({ status: 'read', text: 'um recado', media: { as: 'image', filename: 'a b.png' } })
    expect((found as unknown as { media: object }).media).not.toHaveProperty('status')
    const [shown] = await harness.network.inbox(to)
    expect(shown?.media).toMatchObject({ type: 'image', mimetype, sha256: sha256(bytes), caption: 'um recado' })
    const { media } = found as unknown as { media: { id: string } }
    const again = await new MediaClient(harness.service.url!, { token: number.instance.token }).download(media.id)
    expect(sha256(again.bytes)).toBe(sha256(bytes))
    expect(await send(to, url, { caption: 'um recado' })).toEqual({ id, replayed: true })
    expect(host.requestsOf('/a%20b.png?signature=1')).toBe(1)
  })

  test('a person can also send a file from a URL, and the fetch is counted', async () => {
    const { bytes } = sampleFile('image', 3_000)
    const url = host.file('/by-hand.png', bytes)
    const to = nextContact()
    const { service } = harness
    const headers = { authorization: `Bearer ${service.adminKey}`, 'content-type': 'application/json' }
    const sendByHand = async (media: object) => {
      const request = { method: 'POST', headers, body: JSON.stringify({ to, text: 'veja', media }) }
      const response = await fetch(`${service.url}/admin/v1/instances/${number.id}/messages`, request)
      return (await response.json()) as { data: { id: string }; error: { code: string } }
    }
    const { data } = await sendByHand({ url })
    expect(await becomes(data.id)).toMatchObject({ status: 'read', text: 'veja', media: { filename: 'by-hand.png' } })
    expect(await shownTo(to)).toEqual([sha256(bytes)])
    expect((await sendByHand({ url: forbidden.url('/x') })).error.code).toBe('invalid_request')
    const metrics = await (await fetch(`${service.url}/metrics`, { headers })).text()
    expect(metrics).toMatch(/^pombal_url_fetches_total\{outcome="stored"\} [1-9]/m)
    expect(metrics).toMatch(/^pombal_url_fetches_pending \d/m)
  })

  test('texts that follow a file wait for it, and three redirects lead to it', async () => {
    const { bytes } = sampleFile('document', 100_000)
    const hosted = otherHost.serve('/late', async response => {
      response.writeHead(200, { 'content-length': bytes.length })
      for (let at = 0; at < bytes.length; at += 25_000) {
        response.write(bytes.subarray(at, at + 25_000))
        await sleep(100)
      }
      response.end()
    })
    const url = host.redirect('/1', host.redirect('/2', host.redirect('/3', hosted)))
    const to = nextContact()
    const { id } = await send(to, url)
    const { id: after } = await number.instance.send(to, 'after')
    await becomes(after)
    expect((await becomes(id)).error).toBeNull()
    const shown = (await harness.network.inbox(to)).map(({ text, media }) => media?.sha256 ?? text)
    expect(shown).toEqual([sha256(bytes), 'after'])
  })

  test('a host that fails for a time is asked again: errors, a cut body, a body that is shorter than declared', async () => {
    const { bytes } = sampleFile('document', 200_000)
    const faults = [
      (response: import('node:http').ServerResponse) => void response.writeHead(503).end(),
      (response: import('node:http').ServerResponse) => {
        response.writeHead(200, { 'content-length': bytes.length })
        response.write(bytes.subarray(0, 100_000), () => response.destroy())
      },
      (response: import('node:http').ServerResponse) => void response.socket?.destroy(),
    ]
    const url = host.serve('/faults', response => {
      const fault = faults.shift()
      if (fault) fault(response)
      else response.writeHead(200).end(bytes)
    })
    const to = nextContact()
    expect((await becomes((await send(to, url)).id)).error).toBeNull()
    expect(await shownTo(to)).toEqual([sha256(bytes)])
    expect(faults).toEqual([])
  })

  test('a file that was to be fetched by a clock that was ahead is fetched when the clock has been corrected', async () => {
    const { bytes } = sampleFile('document', 20_000)
    let isThere = false
    const url = host.serve('/early', response => response.writeHead(isThere ? 200 : 503).end(bytes))
    const to = nextContact()
    const { id } = await send(to, url)
    await until('a failed attempt', async () => host.requestsOf('/early') > 0)
    await harness.service.kill('SIGKILL')
    await harness.database.run('update media_fetches set due_at = due_at + 86400000', harness.service.dataDir)
    isThere = true
    await harness.database.expireLeases()
    await harness.service.start()
    await harness.service.admin.untilState(number.id, 'connected')
    expect((await becomes(id)).error).toBeNull()
    expect(await shownTo(to)).toEqual([sha256(bytes)])
  })

  test('an address that files may not come from is refused immediately', async () => {
    for (const url of [
      'http://127.0.0.1/',
      `http://127.0.0.1:1/`,
      'http://[::1]/',
      'http://2130706433/',
      'http://10.0.0.1/',
      'http://[::ffff:10.0.0.1]/',
      'http://169.254.169.254/latest/meta-data',
      'http://8.8.8.8:8080/',
      'https://example.com:8080/',
      'ftp://example.com/a',
      'file:///etc/passwd',
      'http:///a',
      'http://user:password@example.com/a',
      `http://example.com/${'a'.repeat(2_050)}`,
    ]) {
      const error = await send(nextContact(), url).then(
        () => null,
        caught => caught,
      )
      expect(error instanceof ApiError && `${error.status} ${error.code} ${url}`).toBe(`400 invalid_request ${url}`)
    }
  })

  test('a file that cannot be fetched or sent fails its message, and no other address is reached', async () => {
    const { bytes } = sampleFile('document', 1_000)
    const target = forbidden.file('/secret', bytes)
    const loop = host.redirect('/loop', '/loop')
    const large = { 'content-length': String(200 * 1_048_576) }
    const cases: [string, string, object?][] = [
      ['media_unavailable', host.url('/missing')],
      ['media_unavailable', host.redirect('/to-private', target)],
      ['media_unavailable', host.redirect('/to-name', target.replace('127.0.0.1', 'localhost'))],
      ['media_unavailable', host.redirect('/to-mapped', target.replace('127.0.0.1', '[::ffff:7f00:1]'))],
      ['media_unavailable', host.redirect('/to-metadata', 'http://169.254.169.254/latest/meta-data')],
      ['media_unavailable', host.redirect('/to-file', 'file:///etc/passwd')],
      ['media_unavailable', 'http://localhost/'],
      ['media_unavailable', loop],
      ['media_unavailable', host.file('/zipped', gzipSync(bytes), { 'content-encoding': 'gzip' })],
      ['media_unavailable', host.file('/empty', Buffer.alloc(0))],
      ['media_too_large', host.serve('/endless', endless(sampleFile('image', 100).bytes))],
      ['media_too_large', host.serve('/declared', endless(bytes, large))],
      ['media_unsupported', host.file('/document', bytes), { as: 'image' }],
      ['media_unsupported', host.file('/audio', sampleFile('audio', 1_000).bytes), { caption: 'x' }],
    ]
    const sent = []
    for (const [code, url, more] of cases) sent.push({ code, url, ...(await send(nextContact(), url, more)) })
    for (const { id, code, url } of sent) expect(`${(await becomes(id)).error?.code} ${url}`).toBe(`${code} ${url}`)
    expect(host.requestsOf('/loop')).toBe(4)
  })

  test('a slow host delays only the files that come from it', async () => {
    const open = { now: 0, most: 0 }
    const slow = otherHost.serve('/slow', response => {
      open.now += 1
      open.most = Math.max(open.most, open.now)
      response.once('close', () => {
        open.now -= 1
      })
      response.writeHead(200).write('%PDF-1.7')
    })
    const other = await harness.link()
    const waiting: string[] = []
    for (let n = 0; n < 8; n += 1) waiting.push((await send(nextContact(), slow)).id)
    await until('the slow host to be asked', () => otherHost.requestsOf('/slow') >= 2)
    const { bytes } = sampleFile('document', 50_000)
    const url = host.file('/quick', bytes)
    for (const by of [number, other]) {
      const to = nextContact()
      expect((await becomes((await send(to, url, {}, by)).id, by)).error).toBeNull()
      expect(await shownTo(to)).toEqual([sha256(bytes)])
    }
    const text = await number.instance.send(nextContact(), 'meanwhile')
    expect((await becomes(text.id)).error).toBeNull()
    for (const id of waiting) expect((await number.instance.message(id)).status).toBe('queued')
    expect(open.most).toBe(2)
    otherHost.file('/slow', bytes)
  })

  test(
    'kill -9 while files are fetched: each is shown once, with its content',
    async () => {
      const seed = Number(process.env['CRASH_SEED'] ?? newSeed())
      console.log(`kills while files are fetched: CRASH_SEED=${seed}`)
      const random = new Random(seed)
      for (let kill = 0; kill < KILLS; kill += 1) {
        const sent: { to: string; id: string; hash: string }[] = []
        for (let n = 0; n < 3; n += 1) {
          const { bytes } = sampleFile('document', random.integer(1, 400_000))
          const url = host.serve(`/kill-${kill}-${n}`, async response => {
            response.writeHead(200)
            for (let at = 0; at < bytes.length; at += 100_000) {
              response.write(bytes.subarray(at, at + 100_000))
              await sleep(50)
            }
            response.end()
          })
          const to = nextContact()
          sent.push({ to, id: (await send(to, url)).id, hash: sha256(bytes) })
        }
        await sleep(random.between(0, KILL_WITHIN_MS))
        await harness.kill()
        await harness.service.admin.untilState(number.id, 'connected')
        for (const { to, id, hash } of sent) {
          expect((await becomes(id)).error).toBeNull()
          expect(await shownTo(to)).toEqual([hash])
        }
      }
    },
    LONG_TEST_WITHIN_MS,
  )
})
