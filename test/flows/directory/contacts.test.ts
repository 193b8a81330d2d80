import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { STORES } from '../../databases/database.ts'
import { LinkedHarness } from '../../linked-harness.ts'
import { noteBody } from '../../logs/log-capture.ts'
import { until } from '../../until.ts'

const ANA = '5511987670001'

describe.each(STORES)('contacts, on %s', store => {
  let harness: LinkedHarness
  beforeAll(async () => {
    harness = await LinkedHarness.open(store)
  })
  afterAll(async () => harness?.[Symbol.asyncDispose]())

  test('contacts and chats of the phone are taken over when it is linked, and its old messages are no events', async () => {
    const { service, network, receiver } = harness
    const { id, token } = await service.admin.createInstance('whatsapp')
    const link = async () => {
      await service.admin.connect(id)
      const { phone } = await network.scanQr(await harness.showQr(id), 'phone-with-history')
      await service.admin.untilState(id, 'connected')
      return phone
    }
    const phone = await link()
    await service.instance(id, token).setWebhook(receiver.url)
    await network.writeAs({ from: ANA, to: phone, text: 'antes-de-ligar-outra-vez', name: 'Ana Conceição' })
    await until('the message', () => receiver.requests.length > 0 && receiver.requests)
    await service.admin.logout(id)
    await service.admin.untilState(id, 'logged_out')
    const list = async (path: string) => {
      const response = await fetch(`${service.url}/v1${path}`, {
        headers: { authorization: `Bearer ${token}` },
      })
      // biome-ignore lint/suspicious/noExplicitAny: tests compare parts of it
      const { data } = (await response.json()) as any
      noteBody(data)
      return data
    }
    await until('the contacts to be erased', async () => (await list('/contacts')).length === 0)
    await link()
    const [contact] = await until('her name', async () => {
      const found = await list('/contacts?search=conceicao')
      return found.length > 0 && found
    })
    expect(contact).toMatchObject({ chat: ANA, phone: ANA, pushName: 'Ana Conceição' })
    const [chat] = await until('her chat', async () => {
      const found = await list('/chats')
      return found.length > 0 && found
    })
    expect(chat).toMatchObject({ chat: ANA, phone: ANA })
    // Live messages come later, so the history would have caused its event by now.
    await network.writeAs({ from: ANA, to: phone, text: 'depois-de-ligar-outra-vez', name: 'Ana Conceição' })
    await until('the second message', () => receiver.requests.length > 1)
    expect(receiver.requests).toHaveLength(2)
  })
})
