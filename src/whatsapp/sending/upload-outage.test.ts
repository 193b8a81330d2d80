import { expect, test, vi } from 'vitest'
import { stage } from '../../../test/units/sender-harness.ts'
import type { StoredFile } from '../../domain/media.ts'

const REQUESTED = { mediaId: 'med_1', form: null, filename: null }

/** The media hosts do not answer until `outage` is resolved. WhatsApp acknowledges every message immediately. */
function stageOutage() {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date', 'performance'] })
  const file = { media: { mimetype: 'image/png', filename: null } } as StoredFile
  const staged = stage({ files: { find: async () => file, readPicture: async () => null } })
  const { answer, link, sender, accept, numbers, expiresAt, messages } = staged
  const outage = Promise.withResolvers<Uint8Array<ArrayBuffer>>()
  link.uploadFile.mockImplementation(() => outage.promise)
  const write = link.write.getMockImplementation()!
  link.write.mockImplementation(async (...call) => {
    await write(...call)
    answer(call[2])
  })
  const list = messages.listQueued
  const slow = { pageMs: 0 }
  const listQueued = vi.spyOn(messages, 'listQueued').mockImplementation(async (...range) => {
    if (slow.pageMs > 0) await new Promise(resolve => setTimeout(resolve, slow.pageMs))
    return list(...range)
  })
  return {
    ...staged,
    outage,
    listQueued,
    slow,
    /** Accepts a file for the chat with this number. */
    acceptFile(n: number) {
      const to = `55110000${10_000 + n}`
      numbers.set(to, { address: `${to}@s.whatsapp.net`, expiresAt })
      return Object.assign(accept(to), { file: REQUESTED })
    },
    begin() {
      sender.start()
      sender.attach(link)
    },
    async passTime(until: () => boolean, longestMs = 300_000, stepMs = 1_000) {
      for (let ms = 0; ms < longestMs && !until(); ms += stepMs) await vi.advanceTimersByTimeAsync(stepMs)
    },
  }
}

test.each([
  // More chats than there are permits, and more messages than memory holds.
  { chats: 2_500, files: 1 },
  // Every chat has a file that is being sent and more behind it.
  { chats: 100, files: 64 },
])(
  'an outage of the media hosts delays no text to another chat while $chats chats wait with $files files each, and all files follow in order',
  async ({ chats, files }) => {
    const { acceptFile, accept, begin, passTime, outage, written } = stageOutage()
    const accepted = new Map<number, string[]>()
    for (let n = 0; n < chats; n += 1) {
      accepted.set(
        n,
        Array.from({ length: files }, () => acceptFile(n).whatsappId),
      )
    }
    const text = accept()
    begin()
    await passTime(() => text.ended !== undefined)
    const during = written.map(({ whatsappId }) => whatsappId)
    outage.resolve(new Uint8Array([1]))
    await passTime(() => written.length > chats * files)
    expect(during).toEqual([text.whatsappId])
    expect(written).toHaveLength(chats * files + 1)
    for (const [n, ids] of accepted) {
      const sent = written.filter(({ address }) => address.startsWith(`55110000${10_000 + n}@`))
      expect(sent.map(({ whatsappId }) => whatsappId)).toEqual(ids)
    }
  },
)

test('a text behind a long queue of files is read although each page takes long, and after the outage the files follow immediately', async () => {
  const { acceptFile, accept, begin, passTime, outage, written, listQueued, slow } = stageOutage()
  const CHATS = 5_000
  for (let n = 0; n < CHATS; n += 1) acceptFile(n)
  const text = accept()
  slow.pageMs = 1_000
  begin()
  await passTime(() => text.ended !== undefined, 60_000)
  slow.pageMs = 0
  await vi.advanceTimersByTimeAsync(1_000)
  const during = text.ended
  const positions = listQueued.mock.calls.map(([, , afterSeq]) => afterSeq)
  outage.resolve(new Uint8Array([1]))
  await passTime(() => written.length > CHATS, 15_000, 5)
  expect(during).toBeDefined()
  expect(new Set(positions).size).toBe(positions.length)
  expect(written).toHaveLength(CHATS + 1)
})
