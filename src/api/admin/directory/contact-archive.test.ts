import { once } from 'node:events'
import { setImmediate } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { type ContactArchiveOptions, createContactArchive } from './contact-archive.ts'

test.each([
  ['has not read yet', false],
  ['has read everything', true],
])('a file that is still being opened when a reader disconnects that %s is closed', async (_, reads) => {
  const opened = Promise.withResolvers<AsyncIterable<Uint8Array>>()
  const read = vi.fn(() => opened.promise)
  const line = {
    direction: 'command',
    command: { id: 'cmd_1', command: { kind: 'read' }, createdAt: 0, failedAt: null },
  }
  const archive = createContactArchive({
    instance: { id: 'inst_1', name: 'One', phone: null },
    data: {
      names: [],
      entries: {},
      messages: async function* () {
        yield { entry: { ...line, command: { ...line.command, doneAt: 0 } }, mediaId: 'med_1' }
      },
      events: async function* () {},
    },
    store: { clock: { now: () => 0 }, media: { findListed: async () => null } },
    media: { open: async () => ({ media: { size: 1 }, read }) },
    checkAgain: async () => undefined,
    closing: new AbortController().signal,
  } as unknown as ContactArchiveOptions)
  if (reads) archive.resume()
  await vi.waitFor(() => expect(read).toHaveBeenCalled())
  const closed = once(archive, 'close')
  archive.destroy()
  await setImmediate()

  const close = vi.fn(async () => ({ done: true as const, value: undefined }))
  const bytes = {
    [Symbol.asyncIterator]: () => bytes,
    next: async () => ({ done: false as const, value: new Uint8Array(1) }),
    return: close,
  }
  opened.resolve(bytes)
  await closed
  await vi.waitFor(() => expect(close).toHaveBeenCalled())
})
