import { expect, test, vi } from 'vitest'
import { CONDITION_WITHIN_MS } from '../../../test/deadlines.ts'
import { stage } from '../../../test/units/sender-harness.ts'
import type { StoredFile } from '../../domain/media.ts'
import { NO_PACE } from '../../domain/pace.ts'
import type { PaceState, Paces } from '../../store/pace/paces.ts'
import { chatKeyOf } from './queue/queued-chat.ts'
import type { Files } from './uploads.ts'

const HOUR_MS = 3_600_000
const CONTACT = '5511987654321'
const [ANA, BIA] = ['5511900000001', '5511900000002']

function paced(state: Partial<PaceState>, take: Paces['take'] = async () => ({ kind: 'granted' }), files?: Files) {
  const found = { pace: { ...NO_PACE, newRecipientsPerDay: 1 }, opensAt: 0, newRecipientsAt: 0, ...state }
  const staged = stage({
    paces: { find: async () => found, take: vi.fn(take) } as Partial<Paces> as Paces,
    ...(files && { files }),
  })
  for (const number of [ANA, BIA])
    staged.numbers.set(number, { address: `${number}@s.whatsapp.net`, expiresAt: staged.expiresAt })
  return staged
}

test('a message held back by the daily limit on new recipients does not expire when its recipient becomes a contact', async () => {
  const { sender, accept, answer, link, written } = paced({ newRecipientsAt: Date.now() - HOUR_MS })
  const twoDaysAgo = Date.now() - 48 * HOUR_MS
  const [first, next] = [accept(ANA, twoDaysAgo), accept(ANA, twoDaysAgo)]
  const old = accept(CONTACT, twoDaysAgo)
  sender.start()
  sender.attach(link)
  await vi.waitFor(() => expect(old.ended).toContain('expired'), CONDITION_WITHIN_MS)
  const ids = () => written.map(({ whatsappId }) => whatsappId)
  await vi.waitFor(() => expect(ids()).toEqual([first.whatsappId]), CONDITION_WITHIN_MS)
  answer(first.whatsappId)
  await vi.waitFor(() => expect(ids()).toEqual([first.whatsappId, next.whatsappId]), CONDITION_WITHIN_MS)
  expect(next.ended).toBeUndefined()
})

test.each(['before', 'after'])(
  'another message to somebody already written to today is sent, even if the acknowledgement of the first is recorded just %s it is deferred',
  async when => {
    const tomorrow = Date.now() + 12 * HOUR_MS
    const { sender, accept, answer, link, written, contacts, messages, isContact } = paced(
      {},
      async (_, __, recipient) =>
        recipient === null || recipient === chatKeyOf(ANA)
          ? { kind: 'granted' }
          : { kind: 'waits', for: 'new_recipients', until: tomorrow },
    )
    const commit = Promise.withResolvers<void>()
    const { recordProgress } = messages
    messages.recordProgress = async (...args) => {
      await commit.promise
      return recordProgress(...args)
    }
    const readStatus = isContact.getMockImplementation()!
    const asksAboutAna = () => isContact.mock.calls.filter(([, names]) => names.includes(ANA)).length
    // The first message to Ana asks when it is classified and when it takes its turn.
    const ASKED_BY_FIRST = 2
    isContact.mockImplementation(async (...args) => {
      const answered = await readStatus(...args)
      if (when === 'after' || answered || asksAboutAna() <= ASKED_BY_FIRST || !args[1].includes(ANA)) return answered
      commit.resolve()
      await vi.waitFor(() => expect(contacts.has(ANA)).toBe(true), CONDITION_WITHIN_MS)
      return answered
    })
    const first = accept(ANA)
    accept(BIA)
    const next = accept(ANA)
    sender.start()
    sender.attach(link)
    await vi.waitFor(() => expect(written).toHaveLength(1), CONDITION_WITHIN_MS)
    await vi.waitFor(
      () => expect(isContact.mock.calls.flatMap(([, names]) => names)).toContain(BIA),
      CONDITION_WITHIN_MS,
    )
    answer(first.whatsappId)
    await vi.waitFor(() => expect(asksAboutAna()).toBeGreaterThan(ASKED_BY_FIRST), CONDITION_WITHIN_MS)
    await new Promise(resolve => setTimeout(resolve, 20))
    commit.resolve()
    await vi.waitFor(
      () => expect(written.map(({ whatsappId }) => whatsappId)).toContain(next.whatsappId),
      CONDITION_WITHIN_MS,
    )
  },
)

test('a file whose upload outlasts its turn waits for another turn, and is not uploaded again', async () => {
  const granted = { kind: 'granted' } as const
  const take = vi
    .fn<Paces['take']>(async () => granted)
    .mockResolvedValueOnce(granted)
    .mockImplementationOnce(async () => ({ kind: 'waits', for: 'all', until: Date.now() + 500 }))
  const media = { mimetype: 'image/jpeg', size: 1, filename: null }
  const file = { media, open: vi.fn() } as unknown as StoredFile
  const { sender, accept, link, written } = paced({}, take, { find: async () => file, readPicture: async () => null })
  const message = accept(CONTACT)
  message.file = { mediaId: 'med_1', form: 'image', filename: null }
  sender.start()
  sender.attach(link)
  await vi.waitFor(() => expect(take).toHaveBeenCalledTimes(2), CONDITION_WITHIN_MS)
  expect(written).toEqual([])
  await vi.waitFor(
    () => expect(written.map(({ whatsappId }) => whatsappId)).toEqual([message.whatsappId]),
    CONDITION_WITHIN_MS,
  )
  expect(link.uploadFile).toHaveBeenCalledOnce()
})

test('a message to a contact is sent before those to strangers, even if long messages to strangers fill the memory', async () => {
  const { sender, accept, link, numbers, expiresAt, written } = paced({ pace: { ...NO_PACE, perMinute: 1 } })
  for (let n = 0; n < 300; n += 1) {
    const to = `55119000${10_000 + n}`
    numbers.set(to, { address: `${to}@s.whatsapp.net`, expiresAt })
    accept(to).bytes = 32_768
  }
  const toContact = accept(CONTACT)
  sender.start()
  sender.attach(link)
  await vi.waitFor(() => expect(written.length).toBeGreaterThan(0), CONDITION_WITHIN_MS)
  expect(written[0]?.whatsappId).toBe(toContact.whatsappId)
})
