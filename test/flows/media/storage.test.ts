import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { closeSync, mkdirSync, mkdtempSync, openSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { BucketStorage } from '../../../src/media/storage/bucket.ts'
import { FolderStorage } from '../../../src/media/storage/folder.ts'
import { identifyFolder } from '../../../src/media/storage/folder-id.ts'
import type { MediaStorage } from '../../../src/media/storage/storage.ts'
import { until } from '../../until.ts'
import { filesIn } from './harness.ts'
import { S3Server } from './s3-server.ts'

const NAME = 'inst_1/file_1'
/** The size of the parts of a multipart upload. */
const PART = 5 * 1_048_576
/** More than one part. */
const LARGE = 12_000_000

interface Place {
  storage: MediaStorage
  /** How many files there are, including what an interrupted write left. */
  count(): number
  /** Leaves the remains of a write in the middle of which the process was killed. */
  leavePartial(): Promise<void>
  dispose(): Promise<void>
}

async function openFolder(): Promise<Place> {
  const folder = mkdtempSync(join(tmpdir(), 'pombal-media-'))
  return {
    storage: new FolderStorage(join(folder, 'media')),
    count: () => filesIn(folder).length,
    async leavePartial() {
      mkdirSync(join(folder, 'media/inst_1'), { recursive: true })
      writeFileSync(join(folder, `media/${NAME}.partial`), 'half')
    },
    dispose: async () => rmSync(folder, { recursive: true }),
  }
}

async function openBucket(options?: { silenceMs: number }): Promise<Place & { server: S3Server }> {
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'key').stubEnv('AWS_SECRET_ACCESS_KEY', 'secret')
  const server = await new S3Server().listen()
  const place = {
    kind: 'bucket',
    bucket: 'media',
    prefix: 'pombal/',
    endpoint: server.url,
    region: 'eu-west-1',
  } as const
  const storage = new BucketStorage(place, options)
  return {
    storage,
    server,
    count: () => server.objects.size + server.uploads.size,
    async leavePartial() {
      await fetch(`${server.url}/media/pombal/${NAME}?uploads`, { method: 'POST' })
    },
    async dispose() {
      await storage.close()
      await server.close()
      vi.unstubAllEnvs()
    },
  }
}

/** Each part is valid only until the next one is requested, like the parts of encrypted files. */
async function* inParts(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  const part = Buffer.alloc(65_552)
  for (let from = 0; from < bytes.length; from += part.length) {
    const length = Math.min(part.length, bytes.length - from)
    part.set(bytes.subarray(from, from + length))
    yield part.subarray(0, length)
  }
}

async function collect(bytes: AsyncIterable<Uint8Array> | null): Promise<Buffer> {
  const parts: Uint8Array[] = []
  for await (const part of bytes ?? []) parts.push(part)
  return Buffer.concat(parts)
}

describe.each([
  ['folder', openFolder],
  ['bucket', () => openBucket()],
])('a %s', (_name, open) => {
  let place: Place

  beforeEach(async () => {
    place = await open()
  })
  afterEach(() => place.dispose())

  test.each([1, 70_000, PART, PART + 1, 2 * PART, LARGE])(
    'keeps a file of %d bytes, and returns any range of it',
    async size => {
      const { storage, count } = place
      const bytes = randomBytes(size)
      await storage.write(NAME, inParts(bytes))
      expect((await collect(await storage.read(NAME, { from: 0, to: size - 1 }))).equals(bytes)).toBe(true)
      const middle = { from: size >> 1, to: (size >> 1) + (size >> 2) }
      expect((await collect(await storage.read(NAME, middle))).equals(bytes.subarray(middle.from, middle.to + 1))).toBe(
        true,
      )
      expect(count()).toBe(1)
    },
  )

  test('shows no file before it is complete', async () => {
    const { storage } = place
    const { promise: seen, resolve } = Promise.withResolvers<void>()
    const { promise: more, resolve: goOn } = Promise.withResolvers<void>()
    async function* slowly(): AsyncGenerator<Uint8Array> {
      yield* inParts(randomBytes(LARGE))
      resolve()
      await more
      yield randomBytes(10)
    }
    const written = storage.write(NAME, slowly())
    await seen
    expect(await storage.read(NAME, { from: 0, to: 0 })).toBeNull()
    goOn()
    await written
    expect(await collect(await storage.read(NAME, { from: LARGE, to: LARGE + 9 }))).toHaveLength(10)
  })

  test.each([100, LARGE])('keeps nothing of a file whose source fails after %d bytes', async size => {
    async function* failing(): AsyncGenerator<Uint8Array> {
      yield* inParts(randomBytes(size))
      throw new Error('the source failed')
    }
    await expect(place.storage.write(NAME, failing())).rejects.toThrow('the source failed')
    expect(place.count()).toBe(0)
  })

  test('removes a file, the remains of a killed write, and a missing file, however often it is asked', async () => {
    const { storage, count, leavePartial } = place
    await storage.write(NAME, inParts(randomBytes(100)))
    await storage.write(`${NAME}2`, inParts(randomBytes(100)))
    await storage.remove(NAME)
    expect(await storage.read(NAME, { from: 0, to: 9 })).toBeNull()
    expect(count()).toBe(1)
    await leavePartial()
    expect(count()).toBe(2)
    for (let n = 0; n < 2; n += 1) await storage.remove(NAME)
    expect(count()).toBe(1)
    await storage.remove('inst_2/file_1')
  })

  test('stores and removes many files of an instance concurrently', async () => {
    const { storage, count } = place
    const names = Array.from({ length: 30 }, (_, n) => `inst_3/file_${n}`)
    await Promise.all(
      names.map(async name => {
        for (let n = 0; n < 30; n += 1) {
          await storage.write(name, inParts(randomBytes(10)))
          await storage.remove(name)
        }
      }),
    )
    expect(count()).toBe(0)
  })
})

test('a bucket whose service lists no uploads removes files', async () => {
  const { storage, server, count, dispose } = await openBucket()
  try {
    server.listsUploads = false
    await storage.write(NAME, inParts(randomBytes(100)))
    await storage.remove(NAME)
    expect(count()).toBe(0)
    server.fails = request => /uploads/.test(request)
    await expect(storage.remove(NAME)).rejects.toThrow('AccessDenied')
  } finally {
    await dispose()
  }
})

test('a bucket is written, read and cleaned while many slow callers read from it', async () => {
  const { storage, dispose } = await openBucket()
  try {
    const bytes = randomBytes(1_048_576)
    await storage.write(NAME, inParts(bytes))
    const range = { from: 0, to: bytes.length - 1 }
    const unread = await Promise.all(Array.from({ length: 100 }, () => storage.read(NAME, range)))
    await storage.write(`${NAME}2`, inParts(bytes))
    expect((await collect(await storage.read(`${NAME}2`, range))).equals(bytes)).toBe(true)
    await storage.remove(`${NAME}2`)
    for (const each of unread) await each?.[Symbol.asyncIterator]().return?.()
  } finally {
    await dispose()
  }
})

test('a reader of a bucket may pause for longer than the bucket may be silent', async () => {
  const { storage, dispose } = await openBucket({ silenceMs: 300 })
  try {
    const bytes = randomBytes(LARGE)
    await storage.write(NAME, inParts(bytes))
    const parts: Uint8Array[] = []
    for await (const part of (await storage.read(NAME, { from: 0, to: LARGE - 1 }))!) {
      if (parts.length === 0) await sleep(1_000)
      parts.push(part)
    }
    expect(Buffer.concat(parts).equals(bytes)).toBe(true)
  } finally {
    await dispose()
  }
})

test.each([
  ['before its answer', 'request', NAME],
  ['within a file', 'body', NAME],
  ['within a refusal', 'body', 'missing'],
] as const)('a read ends if the bucket is silent %s', async (_, silentFrom, name) => {
  const { storage, server, dispose } = await openBucket({ silenceMs: 300 })
  try {
    await storage.write(NAME, inParts(randomBytes(1_000)))
    server.silentFrom = silentFrom
    const read = storage.read(name, { from: 0, to: 999 }).then(collect)
    await expect(read).rejects.toThrow()
  } finally {
    await dispose()
  }
})

test('a storage in a folder keeps no empty folder of an instance', async () => {
  const root = mkdtempSync(join(tmpdir(), 'pombal-media-'))
  try {
    const storage = new FolderStorage(root)
    await storage.write(NAME, inParts(randomBytes(10)))
    expect(readdirSync(root)).toEqual(['inst_1'])
    await storage.remove(NAME)
    expect(readdirSync(root)).toEqual([])
  } finally {
    rmSync(root, { recursive: true })
  }
})

test('while another folder is mounted in its place, a storage in a folder neither reads, writes nor erases', async () => {
  const root = mkdtempSync(join(tmpdir(), 'pombal-media-'))
  const range = { from: 0, to: 9 }
  try {
    const storage = new FolderStorage(root, identifyFolder(root))
    await storage.write(NAME, inParts(randomBytes(10)))
    renameSync(root, `${root}.away`)
    for (const other of [() => undefined, () => mkdirSync(root), () => identifyFolder(root)]) {
      other()
      await expect(storage.read(NAME, range)).rejects.toThrow('Is it mounted?')
      await expect(storage.write(`${NAME}2`, inParts(randomBytes(10)))).rejects.toThrow('Is it mounted?')
      await expect(storage.remove(NAME)).rejects.toThrow('Is it mounted?')
    }
    rmSync(root, { recursive: true })
    renameSync(`${root}.away`, root)
    expect((await collect(await storage.read(NAME, range))).length).toBe(10)
    expect(await storage.read(`${NAME}2`, range)).toBe(null)
  } finally {
    rmSync(root, { recursive: true })
  }
})

test('a folder that does not answer blocks only a few threads, and works again when it answers', async () => {
  const root = mkdtempSync(join(tmpdir(), 'pombal-media-'))
  const range = { from: 0, to: 9 }
  // A thread that opens a pipe hangs until somebody writes to it.
  const pipes = [join(root, NAME), join(root, 'folder.id')]
  mkdirSync(join(root, 'inst_1'))
  execFileSync('mkfifo', pipes)
  const storage = new FolderStorage(root, 'id', { callsAtOnce: 2, callTimeoutMs: 50 })
  const calls = [0, 1, 2, 3].flatMap(n => [
    storage.read(NAME, range),
    storage.write(`${NAME}${n}`, inParts(randomBytes(10))),
    storage.remove(NAME),
  ])
  const outcomes = await Promise.allSettled(calls)
  expect(outcomes.map(({ status }) => status)).toEqual(calls.map(() => 'rejected'))
  // Node has four threads in tests.
  expect((await stat(root)).isDirectory()).toBe(true)

  for (const path of pipes) {
    closeSync(openSync(path, 'r+'))
    rmSync(path)
  }
  writeFileSync(join(root, 'folder.id'), 'id')
  // A call that takes longer than its limit on a slow machine fails, and may later remove what it wrote.
  let tries = 0
  const written = await until('a write to succeed', () => {
    tries += 1
    const name = `${NAME}-${tries}`
    return storage.write(name, inParts(randomBytes(10))).then(
      () => name,
      () => null,
    )
  })
  const read = await until('a read to succeed', async () =>
    collect(await storage.read(written, range)).catch(() => null),
  )
  expect(read.length).toBe(10)
  rmSync(root, { recursive: true })
})

test('slow readers of a folder keep no other call waiting', async () => {
  const root = mkdtempSync(join(tmpdir(), 'pombal-media-'))
  const bytes = randomBytes(LARGE)
  const range = { from: 0, to: LARGE - 1 }
  const storage = new FolderStorage(root, null, { callsAtOnce: 1, callTimeoutMs: 2_000 })
  await storage.write(NAME, inParts(bytes))
  const slow = (await storage.read(NAME, range))![Symbol.asyncIterator]()
  expect((await slow.next()).value).toBeDefined()
  expect((await collect(await storage.read(NAME, range))).equals(bytes)).toBe(true)
  await slow.return?.()
  rmSync(root, { recursive: true })
})
