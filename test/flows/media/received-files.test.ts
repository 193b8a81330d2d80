import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { Agent, createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { proto } from 'baileys'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { FileSource, MediaForm } from '../../../src/domain/media.ts'
import { AlteredFile, encryptForWhatsapp } from '../../../src/whatsapp/baileys/media/cipher.ts'
import { DownloadFailed, downloadFile } from '../../../src/whatsapp/baileys/media/download.ts'
import { parseFile } from '../../../src/whatsapp/baileys/parsing/incoming-file.ts'
import { createCertificate } from '../../certificate.ts'
import { CONDITION_WITHIN_MS } from '../../deadlines.ts'

const KEY = { id: 'ID', remoteJid: '5511987654321@s.whatsapp.net', participant: null }
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest()

async function* once_(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

async function collect(parts: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = []
  for await (const part of parts) all.push(part)
  return Buffer.concat(all)
}

async function sealed(plain: Uint8Array, form: MediaForm = 'image', directPath = '/v/file.enc?oh=1') {
  const mediaKey = randomBytes(32)
  const bytes = await collect(encryptForWhatsapp(mediaKey, form, once_(plain)))
  const source: FileSource = { form, mediaKey, directPath, encSha256: sha256(bytes), sha256: sha256(plain), key: KEY }
  return { source, bytes }
}

describe('a file is downloaded', () => {
  let server: Server
  let host: string
  const asked: { path: string | undefined; host: string | undefined }[] = []
  let answer: { status: number; bytes: Uint8Array; location?: string }

  beforeAll(async () => {
    server = createServer(createCertificate(), (request, response) => {
      asked.push({ path: request.url, host: request.headers.host })
      const { status, bytes, location } = answer
      response.writeHead(status, location === undefined ? {} : { location }).end(bytes)
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  afterAll(() => server.close())

  const download = (source: FileSource, hosts = [host], simulated = true) =>
    collect(
      downloadFile(source, {
        findHosts: async () => hosts.map(hostname => ({ hostname })),
        simulated,
        openAgent: () => new Agent({ rejectUnauthorized: false }),
        signal: AbortSignal.timeout(CONDITION_WITHIN_MS),
      }),
    )
  const kindOf = (work: Promise<unknown>) =>
    work.then(
      () => 'done',
      error => (error instanceof DownloadFailed ? error.kind : error.name),
    )

  test('with the path and query of its message, and verified', async () => {
    const plain = randomBytes(200_000)
    const { source, bytes } = await sealed(plain)
    answer = { status: 200, bytes }
    expect((await download(source)).equals(plain)).toBe(true)
    expect(asked.at(-1)).toEqual({ path: '/v/file.enc?oh=1', host })
    const other = { ...source, sha256: sha256(randomBytes(1)) }
    await expect(download(other)).rejects.toThrow(AlteredFile)
    await expect(download({ ...source, encSha256: randomBytes(32) })).rejects.toThrow(AlteredFile)
    answer = { status: 200, bytes: bytes.subarray(0, -1) }
    await expect(download(source)).rejects.toThrow(AlteredFile)
  })

  test.each([
    '//198.51.100.7/latest/meta-data',
    '@198.51.100.7/x',
    '/@198.51.100.7/x',
    '/\\198.51.100.7/x',
    'https://198.51.100.7/x',
    '/x HTTP/1.1\r\nHost: 198.51.100.7\r\n\r\n',
    '',
    '/\u00e9',
    `/${'x'.repeat(10_000)}`,
  ])('only from hosts that WhatsApp names: %j', async path => {
    const { source, bytes } = await sealed(randomBytes(100))
    answer = { status: 200, bytes }
    const before = asked.length
    await download({ ...source, directPath: path }).catch(() => undefined)
    for (const request of asked.slice(before)) expect(request).toEqual({ path, host })
  })

  test('without following redirects', async () => {
    const { source } = await sealed(randomBytes(100))
    answer = { status: 302, bytes: new Uint8Array(), location: `https://${host}/elsewhere` }
    expect(await kindOf(download(source))).toBe('unavailable')
    expect(asked.at(-1)!.path).toBe('/v/file.enc?oh=1')
  })

  test('only from hosts of WhatsApp, or on loopback if it is simulated', async () => {
    const { source, bytes } = await sealed(randomBytes(100))
    answer = { status: 200, bytes }
    const before = asked.length
    expect(await kindOf(download(source, [host], false))).toBe('unavailable')
    expect(await kindOf(download(source, ['198.51.100.7', 'whatsapp.net.example', `x@${host}`]))).toBe('unavailable')
    expect(asked.length).toBe(before)
  })

  test.each([
    [403, 'gone'],
    [404, 'gone'],
    [410, 'gone'],
    [500, 'unavailable'],
    [429, 'unavailable'],
  ])('unless its host answers %i, which is %s', async (status, kind) => {
    answer = { status, bytes: new Uint8Array() }
    expect(await kindOf(download((await sealed(randomBytes(10))).source))).toBe(kind)
  })

  test('unless one host does not have it: another that does not answer may', async () => {
    answer = { status: 404, bytes: new Uint8Array() }
    const { source } = await sealed(randomBytes(10))
    const closed = '127.0.0.1:1'
    expect(await kindOf(download(source, [closed, host]))).toBe('maybe_gone')
    expect(await kindOf(download(source, [host, closed]))).toBe('maybe_gone')
    expect(await kindOf(download(source, [host, host]))).toBe('gone')
  })
})

describe('what a message states about its file', () => {
  const part = {
    mediaKey: randomBytes(32),
    fileSha256: randomBytes(32),
    fileEncSha256: randomBytes(32),
    directPath: '/v/a',
    fileLength: 5,
    mimetype: 'Image/PNG; x=y',
  }
  const parse = (content: proto.IMessage) => parseFile(content, { ...KEY, fromMe: false })

  test('is cleaned', () => {
    const file = parse({ documentMessage: { ...part, fileName: '../\u202egnp.exe', seconds: -1 } as never })
    expect(file?.facts).toMatchObject({ mimetype: 'image/png', size: 5, filename: 'gnp.exe', seconds: null })
    const voice = parse({ audioMessage: { ...part, mimetype: 'audio/ogg; codecs=opus', ptt: true, seconds: 3 } })
    expect(voice).toMatchObject({
      facts: { mimetype: 'audio/ogg; codecs=opus', seconds: 3 },
      source: { form: 'voice' },
    })
    expect(parse({ imageMessage: { ...part, mimetype: '<script>', fileLength: 2 ** 60 } })?.facts).toMatchObject({
      mimetype: 'application/octet-stream',
      size: 0,
    })
  })

  test.each(['mediaKey', 'fileSha256', 'fileEncSha256', 'directPath'] as const)('is not enough without %s', field => {
    expect(parse({ imageMessage: { ...part, [field]: null } })?.source).toBeNull()
    if (field !== 'directPath')
      expect(parse({ imageMessage: { ...part, [field]: randomBytes(31) } })?.source).toBeNull()
  })

  test('may be a URL, and only its path counts', () => {
    const url = 'https://198.51.100.7/v/b?oh=1'
    expect(parse({ imageMessage: { ...part, directPath: null, url } })?.source?.directPath).toBe('/v/b?oh=1')
  })

  test('is nothing for a text', () => {
    expect(parse({ conversation: 'hi' })).toBeUndefined()
  })
})
