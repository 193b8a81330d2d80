import { expect, test, vi } from 'vitest'
import { stage } from '../../../test/units/sender-harness.ts'
import type { StoredFile } from '../../domain/media.ts'

const REQUESTED = { mediaId: 'med_1', form: null, filename: null }

/** The media hosts do not answer until `outage` is resolved. WhatsApp acknowledges every message immediately. */
function stageOutage() {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date', 'performance'] })
  const file = { media: { mimetype: 'image/png', filename: null } } as StoredFile
  const staged = stage({ files: { find: async () => file, readPicture: async () => null } })
  const { answer, link, sender, accept, numbers, expiresAt } = staged
  const outage = Promise.withResolvers<Uint8Array<ArrayBuffer>>()
  link.uploadFile.mockImplementation(() => outage.promise)
  const write = link.write.getMockImplementation()!
  link.write.mockImplementation(async (...call) => {
    await write(...call)
    answer(call[2])
  })
  return {
    ...staged,
    outage,
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

test('an outage of the media hosts delays no text to another chat, and all files follow, those of a chat in order', async () => {
  const { acceptFile, accept, begin, passTime, outage, written } = stageOutage()
  // More chats than there are permits.
  const CHATS = 800
  const accepted = new Map<number, string[]>()
  for (let n = 0; n < CHATS; n += 1) accepted.set(n, [acceptFile(n).whatsappId, acceptFile(n).whatsappId])
  const text = accept()
  begin()
  await passTime(() => text.ended !== undefined)
  const during = written.map(({ whatsappId }) => whatsappId)
  outage.resolve(new Uint8Array([1]))
  await passTime(() => written.length > 2 * CHATS)
  expect(during).toEqual([text.whatsappId])
  expect(written).toHaveLength(2 * CHATS + 1)
  for (const [n, ids] of accepted) {
    const sent = written.filter(({ address }) => address.startsWith(`55110000${10_000 + n}@`))
    expect(sent.map(({ whatsappId }) => whatsappId)).toEqual(ids)
  }
})
