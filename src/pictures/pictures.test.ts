import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { animatedPng, hugePng } from '../../test/pictures/hostile-pictures.ts'
import { FileUnavailable, type StoredFile } from '../domain/media.ts'
import { Pictures, type PicturesOptions } from './pictures.ts'

const MIB = 1_048_576
const NEVER = new AbortController().signal

let lastId = 0
function stored(bytes: Uint8Array, mimetype: string): StoredFile {
  const media = { id: `med_${++lastId}`, mimetype, size: bytes.length, sha256: bytes, filename: null, expiresAt: 0 }
  return {
    media,
    open: async () =>
      (async function* () {
        yield bytes
      })(),
  }
}

const MAX_MS = 25_000

function open(options: Partial<PicturesOptions> = {}) {
  const failures: string[] = []
  const pictures = new Pictures({ maxMs: MAX_MS, ...options, onFailed: (_, why) => failures.push(why) })
  const read = (bytes: Uint8Array, mimetype: string) => pictures.read(stored(bytes, mimetype), NEVER)
  return { pictures, read, failures }
}

function sample(frames = 1) {
  const size = { width: 300, height: 200 * frames, channels: 4 as const }
  const noise = Buffer.from(Array.from({ length: size.width * size.height * 4 }, (_, at) => (at * 37) % 251))
  return sharp(noise, { raw: { ...size, pageHeight: 200 } })
}

describe('a picture', () => {
  test.each([
    ['image/jpeg', () => sample().jpeg()],
    ['image/png', () => sample().png()],
    ['image/webp', () => sample().webp()],
    ['image/gif', () => sample().gif()],
  ] as const)('of type %s has its size and a small JPEG', async (mimetype, draw) => {
    const { read, failures } = open()
    const picture = await read(await draw().toBuffer(), mimetype)
    expect(failures).toEqual([])
    expect(picture).toMatchObject({ width: 300, height: 200, isAnimated: false })
    expect(await sharp(picture!.thumbnail).metadata()).toMatchObject({ format: 'jpeg', width: 100, height: 67 })
    expect(picture!.thumbnail.length).toBeLessThan(10_000)
  })

  test('that the camera turned has the size at which it is shown', async () => {
    const turned = await sample().withMetadata({ orientation: 6 }).jpeg().toBuffer()
    expect(await open().read(turned, 'image/jpeg')).toMatchObject({ width: 200, height: 300 })
  })

  test('that is animated is reported as animated', async () => {
    const moving = await sample(3).webp().toBuffer()
    expect(await open().read(moving, 'image/webp')).toMatchObject({ width: 300, height: 200, isAnimated: true })
  })

  test('is read once, however many messages contain it', async () => {
    const { pictures } = open()
    const bytes = await sample().png().toBuffer()
    const file = stored(bytes, 'image/png')
    let reads = 0
    const counted = {
      media: file.media,
      open: () => {
        reads += 1
        return file.open()
      },
    }
    const first = await pictures.read(counted, NEVER)
    expect(first).not.toBeNull()
    for (let again = 0; again < 3; again += 1) expect(await pictures.read(counted, NEVER)).toBe(first)
    expect(reads).toBe(1)
  })
})

describe('a hostile picture has no thumbnail', () => {
  test.each([
    ['a bomb of 900 million pixels', 'ended with 1', () => hugePng(30_000, 30_000, { unpacked: 8 * MIB })],
    [
      'a bomb that has to be unpacked as a whole',
      'ended with SIGKILL',
      () => hugePng(7_000, 7_000, { bits: 16, isInterlaced: true, unpacked: 400 * MIB }),
    ],
    ['a picture that was cut', 'ended with 1', () => hugePng(3_000, 3_000, { unpacked: 2 * MIB })],
    [
      'SVG',
      'ended with 1',
      () => Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect/></svg>'),
    ],
    ['an empty file', 'ended with 1', () => Buffer.alloc(0)],
    ['something else', 'ended with 1', () => Buffer.alloc(100_000, 'x')],
  ])('%s', async (_, why, draw) => {
    const { read, failures } = open()
    expect(await read(draw(), 'image/png')).toBeNull()
    expect(failures).toEqual([expect.stringContaining(why)])
  })

  test('except an animation of any length: only its first picture is decoded', async () => {
    expect(await open().read(animatedPng(1_000_000), 'image/png')).toMatchObject({ width: 10, height: 10 })
  })

  test('and a file of another type is not read', async () => {
    const { read, failures } = open({ program: '/nowhere' })
    expect(await read(Buffer.from('%PDF-1.7'), 'application/pdf')).toBeNull()
    expect(await read(Buffer.from('<svg/>'), 'image/svg+xml')).toBeNull()
    expect(await read(Buffer.alloc(17 * MIB), 'image/png')).toBeNull()
    expect(failures).toEqual([])
  })
})

describe('a process that', () => {
  let folder: string
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'pombal-pictures-'))
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  const program = (name: string, code: string) => {
    const file = join(folder, `${name}.mjs`)
    writeFileSync(file, code)
    return file
  }

  test.each([
    ['crashes', 'process.abort()'],
    ['ends without an answer', 'process.exit(0)'],
    ['fails', 'process.exit(3)'],
    ['answers nonsense', 'process.stdout.write("{}")'],
    ['answers without end', 'for (;;) process.stdout.write("x".repeat(10_000))'],
    ['hangs', 'setInterval(() => {}, 1_000)'],
    ['reads nothing and hangs', 'process.stdin.pause(); setInterval(() => {}, 1_000)'],
  ])('%s costs only the thumbnail', async (name, code) => {
    const { pictures, failures } = open({ program: program(name, code), maxMs: 2_000 })
    const file = stored(Buffer.alloc(3 * MIB), 'image/png')
    expect(await pictures.read(file, NEVER)).toBeNull()
    expect(failures).toHaveLength(1)
    // It is not tried again for every message with this file.
    expect(await pictures.read(file, NEVER)).toBeNull()
    expect(failures).toHaveLength(1)
  })

  test.each(['/nowhere', '/no\0where'])('cannot be started from %j costs only the thumbnail', async path => {
    const { pictures, failures } = open()
    const file = stored(Buffer.alloc(100), 'image/png')
    const opening = vi.spyOn(file, 'open')
    const { execPath } = process
    process.execPath = path
    try {
      expect(await pictures.read(file, NEVER)).toBeNull()
    } finally {
      process.execPath = execPath
    }
    expect(failures).toHaveLength(1)
    // An open file would stay open.
    expect(opening).not.toHaveBeenCalled()
  })

  test('is started has no secrets', async () => {
    process.env['SECRET_OF_THE_TEST'] = 'x'
    const answer = 'JSON.stringify({ width: Object.keys(process.env).length + 1, height: 1, thumbnail: "" })'
    const { read } = open({ program: program('environment', `process.stdout.write(${answer})`) })
    expect(await read(Buffer.from('x'), 'image/png')).toMatchObject({ width: 1 })
  })

  test('gets only a part of the file costs only this message its thumbnail, not the next one', async () => {
    const { pictures, failures } = open()
    const file = stored(await sample().png().toBuffer(), 'image/png')
    const away = { media: file.media, open: () => Promise.reject(new FileUnavailable('away')) }
    expect(await pictures.read(away, NEVER)).toBeNull()
    expect(failures).toEqual(['away'])
    expect(await pictures.read(file, NEVER)).toMatchObject({ width: 300 })
  })
})
