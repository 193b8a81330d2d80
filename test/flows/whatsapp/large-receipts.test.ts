import { expect, test } from 'vitest'
import { until } from '../../until.ts'
import { WhatsappHarness } from './harness.ts'

/** Neither delivers nor reads. */
const CONTACT = '15005550003'
/** More writes than the store lets wait. */
const UNKNOWN = 12_000

test('a receipt for very many messages is recorded step by step: calls are not refused, and the last message is read', async () => {
  await using harness = await WhatsappHarness.open()
  const { store, network } = harness
  let running = 0
  let most = 0
  const messages = new Proxy(store.messages, {
    get: (target, name) => {
      const value = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      if (name !== 'recordReceipt') return value.bind(target)
      return async (...given: Parameters<typeof target.recordReceipt>) => {
        running += 1
        most = Math.max(most, running)
        return target.recordReceipt(...given).finally(() => {
          running -= 1
        })
      }
    },
  })
  const { connections, events, credentials, numbers, paces, directory, downloads, hints } = store
  const { id, phone } = await harness.link({
    store: { connections, messages, events, credentials, numbers, paces, directory, downloads, hints },
  })
  const { id: message, whatsappId } = await harness.accept(id, CONTACT, 'the last one')
  await harness.becomes(id, message, 'sent')
  const ids = Array.from({ length: UNKNOWN }, (_, index) => `3EB0${index.toString(16).toUpperCase().padStart(16, '0')}`)
  const items = [...ids, whatsappId].map(one => ({ tag: 'item', attrs: { id: one } }))
  const attrs = { from: `${CONTACT}@s.whatsapp.net`, id: '3EB0FEED', type: 'read', t: '1700000000' }
  const stanza = { tag: 'receipt', attrs, content: [{ tag: 'list', attrs: {}, content: items }] }
  await network.misbehave({ kind: 'stanza', account: phone, stanza })
  await until('the receipt to arrive', () => running > 0)
  await harness.accept(id, CONTACT, 'a call meanwhile')
  await harness.becomes(id, message, 'read')
  expect(most).toBeLessThanOrEqual(100)
})
