import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Media, StoredFile } from '../../domain/media.ts'
import type { QueuedMessage } from '../../store/messages/messages.ts'
import { Uploads } from './uploads.ts'

beforeEach(() => vi.useFakeTimers({ toFake: ['performance'] }))
afterEach(() => vi.useRealTimers())

const MESSAGE = { id: 'msg_1', instanceId: 'inst_1', text: '' } as QueuedMessage
const FILE = { mediaId: 'med_1', form: null, filename: null }
const LINK = { closed: new AbortController().signal, uploadFile: async () => new Uint8Array() }

test('a chat waits one minute for a file that is fetched from its URL; then the message fails and says so', async () => {
  const uploads = new Uploads({ find: async () => 'pending', readPicture: async () => null })
  expect(await uploads.upload(MESSAGE, FILE, LINK)).toEqual({ kind: 'fetching' })
  vi.advanceTimersByTime(59_000)
  expect(await uploads.upload(MESSAGE, FILE, LINK)).toEqual({ kind: 'fetching' })
  vi.advanceTimersByTime(2_000)
  expect(await uploads.upload(MESSAGE, FILE, LINK)).toMatchObject({
    failure: { code: 'media_unavailable', message: expect.stringContaining('within 60 s') },
  })
})

test.each([
  ['gone', 'media_unavailable'],
  ['too_large', 'media_too_large'],
  ['no_space', 'media_unavailable'],
] as const)('a file that is %s fails its message as %s', async (found, code) => {
  const uploads = new Uploads({ find: async () => found, readPicture: async () => null })
  expect(await uploads.upload(MESSAGE, FILE, LINK)).toMatchObject({ kind: 'refused', failure: { code } })
})

test.each(['gone', 'pending', 'too_large', 'no_space'] as const)(
  'a preview whose image is %s is sent without it',
  async found => {
    const uploads = new Uploads({ find: async () => found, readPicture: async () => null })
    expect(await uploads.findThumbnail(MESSAGE, 'med_1', LINK)).toBeNull()
  },
)

test('a preview whose image cannot be read does not wait longer than its link lasts', async () => {
  const image = { media: { id: 'med_1' } as Media, open: () => new Promise<never>(() => undefined) }
  const { promise: reading, resolve: begin } = Promise.withResolvers<void>()
  const readPicture = (file: StoredFile) => {
    begin()
    return file.open() as Promise<never>
  }
  const uploads = new Uploads({ find: async () => image, readPicture })
  const link = new AbortController()
  const found = uploads.findThumbnail(MESSAGE, 'med_1', { closed: link.signal })
  await reading
  link.abort()
  expect(await found).toBeNull()
})
