import { describe, expect, test, vi } from 'vitest'
import { CONDITION_WITHIN_MS } from '../../../test/deadlines.ts'
import { ADDRESS, stage } from '../../../test/units/sender-harness.ts'
import type { SendingLink } from './send.ts'

describe('an acknowledgement', () => {
  test('ends the message, and only then is the next one to the recipient written', async () => {
    const { sender, accept, answer, written, link } = stage()
    sender.start()
    sender.attach(link)
    const first = accept()
    const second = accept()
    await vi.waitFor(() => expect(written).toHaveLength(1), CONDITION_WITHIN_MS)
    answer(first.whatsappId)
    await vi.waitFor(
      () => expect(written.map(({ whatsappId }) => whatsappId)).toEqual(['3EB01', '3EB02']),
      CONDITION_WITHIN_MS,
    )
    answer(second.whatsappId)
    await vi.waitFor(() => expect([first.ended, second.ended]).toEqual(['sent', 'sent']), CONDITION_WITHIN_MS)
  })

  test('that never arrives makes the next link send the same content with the same ID', async () => {
    const { sender, accept, answer, written, link, close } = stage({ ackTimeoutMs: 60_000 })
    sender.start()
    sender.attach(link)
    const message = accept()
    await vi.waitFor(() => expect(written).toHaveLength(1), CONDITION_WITHIN_MS)
    sender.detach()
    close()
    sender.attach({ ...link, closed: new AbortController().signal })
    await vi.waitFor(() => expect(written).toHaveLength(2), CONDITION_WITHIN_MS)
    expect(written[1]).toEqual(written[0])
    answer(message.whatsappId)
    await vi.waitFor(() => expect(message.ended).toBe('sent'), CONDITION_WITHIN_MS)
  })

  test('that is missing delays only its recipient', async () => {
    const { sender, accept, answer, written, link, numbers, expiresAt } = stage({ ackTimeoutMs: 60_000 })
    numbers.set('5511900000002', { address: '5511900000002@s.whatsapp.net', expiresAt })
    sender.start()
    sender.attach(link)
    for (let count = 0; count < 300; count += 1) accept()
    const other = accept('5511900000002')
    await vi.waitFor(() => expect(written).toHaveLength(2), CONDITION_WITHIN_MS)
    answer(other.whatsappId)
    await vi.waitFor(() => expect(other.ended).toBe('sent'), CONDITION_WITHIN_MS)
  })

  test.each(['acknowledgement', 'receipt'])(
    'that comes late, as a late %s, still counts, and the next message is sent',
    async kind => {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] })
      const { sender, accept, answer, written, link } = stage({ ackTimeoutMs: 10 })
      sender.start()
      sender.attach(link)
      const first = accept()
      const second = accept()
      await vi.waitFor(() => expect(written).toHaveLength(1), CONDITION_WITHIN_MS)
      await vi.advanceTimersByTimeAsync(50)
      if (kind === 'receipt') {
        first.ended = 'delivered'
        sender.noteReceipt([first.whatsappId])
      } else answer(first.whatsappId)
      await vi.waitFor(() => expect(first.ended).toBeDefined(), CONDITION_WITHIN_MS)
      await vi.waitFor(
        () => expect(written.map(({ whatsappId }) => whatsappId)).toEqual(['3EB01', '3EB02']),
        CONDITION_WITHIN_MS,
      )
      answer(second.whatsappId)
    },
  )

  test('has its full time after the write: a message that is still being encrypted is not written twice', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] })
    const { sender, accept, answer, written, link } = stage({ ackTimeoutMs: 10 })
    const write = link.write.getMockImplementation()!
    const encrypted = Promise.withResolvers<void>()
    link.write.mockImplementation(async (...call) => {
      await encrypted.promise
      await write(...call)
    })
    sender.start()
    sender.attach(link)
    const message = accept()
    await vi.waitFor(() => expect(link.write).toHaveBeenCalledOnce(), CONDITION_WITHIN_MS)
    await vi.advanceTimersByTimeAsync(60_000)
    expect(link.write).toHaveBeenCalledOnce()
    encrypted.resolve()
    await vi.waitFor(() => expect(written).toHaveLength(1), CONDITION_WITHIN_MS)
    answer(message.whatsappId)
    await vi.waitFor(() => expect(message.ended).toBe('sent'), CONDITION_WITHIN_MS)
  })

  test('is not needed after a receipt', async () => {
    const { sender, accept, written, link } = stage({ ackTimeoutMs: 60_000 })
    sender.start()
    sender.attach(link)
    const message = accept()
    await vi.waitFor(() => expect(written).toHaveLength(1), CONDITION_WITHIN_MS)
    sender.noteReceipt([message.whatsappId])
    await vi.waitFor(() => expect(message.ended).toBe('sent'), CONDITION_WITHIN_MS)
  })
})

describe('a refusal', () => {
  test.each([463, 421, 500])('of a message to a person with %i is final', async error => {
    const { sender, accept, answer, written, link } = stage()
    sender.start()
    sender.attach(link)
    const message = accept()
    await vi.waitFor(() => expect(written).toHaveLength(1), CONDITION_WITHIN_MS)
    answer(message.whatsappId, { error })
    await vi.waitFor(
      () => expect(message.ended).toContain(`rejected_by_whatsapp: WhatsApp refused the message (code ${error})`),
      CONDITION_WITHIN_MS,
    )
    expect(written).toHaveLength(1)
  })

  test('that is late makes the next message carry the key of the group', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] })
    const { sender, accept, answer, written, link } = stage({ ackTimeoutMs: 10 })
    const group = '120363000000000001@g.us'
    const message = accept(group)
    message.prepared = { address: group, content: new Uint8Array([1]) }
    sender.start()
    sender.attach(link)
    await vi.waitFor(() => expect(written).toHaveLength(1), CONDITION_WITHIN_MS)
    await vi.advanceTimersByTimeAsync(50)
    link.shareKeyAgain.mockClear()
    answer(message.whatsappId, { error: 500 })
    await vi.waitFor(() => expect(message.ended).toContain('rejected_by_whatsapp'), CONDITION_WITHIN_MS)
    expect(link.shareKeyAgain).toHaveBeenCalledExactlyOnceWith(group)
    expect(written).toHaveLength(1)
  })

  test('for stale devices leads to one retry with new devices; a second refusal is final', async () => {
    const { sender, accept, answer, written, link } = stage()
    sender.start()
    sender.attach(link)
    const message = accept()
    await vi.waitFor(() => expect(written).toHaveLength(1), CONDITION_WITHIN_MS)
    answer(message.whatsappId, { error: 479 })
    await vi.waitFor(() => expect(written).toHaveLength(2), CONDITION_WITHIN_MS)
    expect(link.forgetDevices).toHaveBeenCalledWith(ADDRESS)
    answer(message.whatsappId, { error: 479 })
    await vi.waitFor(() => expect(message.ended).toContain('479'), CONDITION_WITHIN_MS)
  })

  test('for stale devices that is late does not end the message, and the next attempt uses new devices', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] })
    const { sender, accept, answer, written, link } = stage({ ackTimeoutMs: 10 })
    sender.start()
    sender.attach(link)
    const message = accept()
    await vi.waitFor(() => expect(written).toHaveLength(1), CONDITION_WITHIN_MS)
    await vi.advanceTimersByTimeAsync(50)
    answer(message.whatsappId, { error: 479 })
    await vi.waitFor(() => expect(link.forgetDevices).toHaveBeenCalledWith(ADDRESS), CONDITION_WITHIN_MS)
    await vi.waitFor(() => expect(written).toHaveLength(2), CONDITION_WITHIN_MS)
    answer(message.whatsappId)
    await vi.waitFor(() => expect(message.ended).toBe('sent'), CONDITION_WITHIN_MS)
  })
})

test('a hash of the recipient’s devices causes one query, however often WhatsApp repeats it', async () => {
  const { sender, accept, answer, written, link } = stage()
  sender.start()
  sender.attach(link)
  for (const [n, devicesHash] of ['2:a', '2:a', '2:b', undefined].entries()) {
    const message = accept()
    await vi.waitFor(() => expect(written).toHaveLength(n + 1), CONDITION_WITHIN_MS)
    answer(message.whatsappId, { devicesHash })
    await vi.waitFor(() => expect(message.ended).toBeDefined(), CONDITION_WITHIN_MS)
  }
  expect(link.forgetDevices).toHaveBeenCalledTimes(2)
})

describe('a recipient', () => {
  const hung: ((error: Error) => void)[] = []

  test.each([
    ['whose look-up never ends', 60, () => new Promise<never>((_, reject) => hung.push(reject))],
    ['whose look-up times out', 2_500, async () => ({ kind: 'silent' as const })],
  ])('%s delays no other, however many there are', async (_, count, lookUp) => {
    const { sender, accept, written, link } = stage()
    for (let n = 0; n < count; n++) accept(`55110000${10_000 + n}`)
    const known = accept()
    sender.start()
    sender.attach({ ...link, lookUp })
    await vi.waitFor(
      () => expect(written.map(({ whatsappId }) => whatsappId)).toEqual([known.whatsappId]),
      CONDITION_WITHIN_MS,
    )
    // The link does the same when it closes.
    for (const reject of hung.splice(0)) reject(new Error('closed'))
  })

  test('unknown to WhatsApp fails the message and is looked up once', async () => {
    const { sender, accept, link, written } = stage()
    link.lookUp.mockResolvedValue({ kind: 'absent' })
    sender.start()
    sender.attach(link)
    const messages = [accept('5511900000009'), accept('5511900000009')]
    await vi.waitFor(() => {
      for (const message of messages) expect(message.ended).toContain('recipient_not_on_whatsapp')
    }, CONDITION_WITHIN_MS)
    expect(link.lookUp).toHaveBeenCalledTimes(1)
    expect(written).toEqual([])
  })

  test('whose look-up was not answered does not fail the message and is looked up again', async () => {
    const { sender, accept, link, answer, written } = stage()
    sender.start()
    sender.attach(link)
    const message = accept('5511900000009')
    await vi.waitFor(() => expect(link.lookUp).toHaveBeenCalledTimes(1), CONDITION_WITHIN_MS)
    link.lookUp.mockResolvedValue({ kind: 'found', address: '551190000009@s.whatsapp.net' })
    sender.attach(link)
    await vi.waitFor(() => expect(written[0]?.address).toBe('551190000009@s.whatsapp.net'), CONDITION_WITHIN_MS)
    answer(message.whatsappId)
    await vi.waitFor(() => expect(message.ended).toBe('sent'), CONDITION_WITHIN_MS)
  })

  test('whose look-up ends after the message’s lifetime still gets it: no message is both failed and sent', async () => {
    const { sender, accept, answer, link, written } = stage({ messageTtlMs: 5_000 })
    const found = Promise.withResolvers<Awaited<ReturnType<SendingLink['lookUp']>>>()
    sender.start()
    sender.attach({ ...link, lookUp: () => found.promise })
    const message = accept('5511900000009')
    const behind = accept('5511900000009')
    await vi.waitFor(() => expect(behind.ended).toContain('expired'), CONDITION_WITHIN_MS)
    expect(message.ended).toBeUndefined()
    found.resolve({ kind: 'found', address: '5511900000009@s.whatsapp.net' })
    await vi.waitFor(() => expect(written).toHaveLength(1), CONDITION_WITHIN_MS)
    answer(message.whatsappId)
    await vi.waitFor(() => expect(message.ended).toBe('sent'), CONDITION_WITHIN_MS)
  })

  test('that is a group without us as a member fails the message', async () => {
    const { sender, accept, link } = stage()
    sender.start()
    sender.attach(link)
    const message = accept('120363000000000001@g.us')
    await vi.waitFor(() => expect(message.ended).toContain('not_a_group_member'), CONDITION_WITHIN_MS)
  })
})

describe('age', () => {
  test('fails unprepared messages as expired and prepared ones as unconfirmed, without a link', async () => {
    const { sender, accept } = stage({ messageTtlMs: 1_000 })
    const never = accept('5511987654321', Date.now() - 2_000)
    const maybe = accept('5511987654321', Date.now() - 2_000)
    maybe.prepared = { address: ADDRESS, content: Buffer.from('x') }
    const young = accept('5511987654321', Date.now() + 60_000)
    sender.start()
    await vi.waitFor(() => {
      expect(never.ended).toContain('expired')
      expect(maybe.ended).toContain('unconfirmed')
    }, CONDITION_WITHIN_MS)
    expect(young.ended).toBeUndefined()
  })
})

test('a message is written only after it is recorded as prepared, with the content that was stored first', async () => {
  const { sender, accept, link, answer, written, rows } = stage()
  const message = accept()
  sender.start()
  // An earlier attempt is recorded late, after the row was read.
  const read = { ...rows[0]! }
  sender.attach(link)
  message.prepared = { address: ADDRESS, content: Buffer.from('0a0166', 'hex') }
  expect(read.prepared).toBeNull()
  await vi.waitFor(() => expect(link.write).toHaveBeenCalled(), CONDITION_WITHIN_MS)
  sender.attach(link)
  await vi.waitFor(() => expect(written.map(({ content }) => content)).toEqual(['0a0166']), CONDITION_WITHIN_MS)
  answer(message.whatsappId)
  await vi.waitFor(() => expect(message.ended).toBe('sent'), CONDITION_WITHIN_MS)
})

test('a message that was deleted before it was recorded as prepared is not written', async () => {
  const { sender, accept, link, answer, written, rows, messages } = stage()
  const deleted = accept()
  messages.recordPrepared.mockResolvedValueOnce(null)
  sender.start()
  sender.attach(link)
  const next = accept()
  await vi.waitFor(
    () => expect(written.map(({ whatsappId }) => whatsappId)).toEqual([next.whatsappId]),
    CONDITION_WITHIN_MS,
  )
  expect(rows[0]).toBe(deleted)
  answer(next.whatsappId)
  await vi.waitFor(() => expect(next.ended).toBe('sent'), CONDITION_WITHIN_MS)
})

test('a failed write is retried and causes no unhandled rejection', async () => {
  const { sender, accept, link, answer, written, failed } = stage()
  link.write.mockRejectedValueOnce(1006)
  sender.start()
  sender.attach(link)
  const message = accept()
  await vi.waitFor(() => expect(link.write).toHaveBeenCalledTimes(1), CONDITION_WITHIN_MS)
  sender.attach(link)
  await vi.waitFor(() => expect(written).toHaveLength(1), CONDITION_WITHIN_MS)
  answer(message.whatsappId)
  await vi.waitFor(() => expect(message.ended).toBe('sent'), CONDITION_WITHIN_MS)
  expect(failed).not.toHaveBeenCalled()
})
