import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ONE_STORE } from '../../databases/one-store.ts'
import { Talking } from './harness.ts'

/** A person's LID in the simulated network. */
const lidOf = (number: string) => `${(999_999_999_999_999 - Number(number)).toString()}@lid`

describe.each(ONE_STORE)('addresses, on %s', store => {
  let talking: Talking
  beforeAll(async () => {
    talking = await Talking.open(store)
  })
  afterAll(async () => talking?.[Symbol.asyncDispose]())

  test('the chat, phone and LID of an event are all addresses that can be answered', async () => {
    const from = '5511987650001'
    const { chat, phone, lid } = await talking.receive(from, 'oi', { name: 'Ana' })
    expect({ chat, phone, lid }).toEqual({ chat: from, phone: from, lid: lidOf(from) })
    for (const to of [chat, phone, lid] as string[]) await talking.becomes(await talking.send({ to, text: to }), 'read')
    expect((await talking.inbox(from)).map(({ text }) => text)).toEqual([chat, phone, lid])
  })

  test('a LID that never wrote is looked up, and an unknown one fails', async () => {
    const number = '5511987650002'
    await talking.becomes(await talking.send({ to: lidOf(number), text: 'by LID' }), 'read')
    expect((await talking.inbox(number)).map(({ text }) => text)).toEqual(['by LID'])
    const failed = await talking.becomes(await talking.send({ to: lidOf('15005550001'), text: 'nobody' }), 'failed')
    expect(failed.error.code).toBe('recipient_not_on_whatsapp')
  })

  test('a number and its LID are one chat with one order', async () => {
    const number = '5511987650003'
    await talking.receive(number, 'oi')
    const texts = Array.from({ length: 30 }, (_, index) => `passo-${index}`)
    const ids: string[] = []
    for (const [index, text] of texts.entries())
      ids.push(await talking.send({ to: index % 2 === 0 ? number : lidOf(number), text }))
    await talking.becomes(ids.at(-1)!, 'sent', 'delivered', 'read')
    expect((await talking.inbox(number)).map(({ text }) => text)).toEqual(texts)
  })

  test('a message to a LID whose look-up takes long is not overtaken by one to the number', async () => {
    const number = '5511987650005'
    await talking.receive(number, 'oi')
    await talking.becomes(await talking.send({ to: number, text: 'first' }), 'read')
    const when = { stanza: 'iq', direction: 'in', attrs: { xmlns: 'usync' } } as const
    await talking.harness.network.misbehave({ kind: 'rule', rule: { when, do: { delayMs: 1_000 } } })
    await talking.send({ to: lidOf(number), text: 'second' })
    await talking.becomes(await talking.send({ to: number, text: 'third' }), 'read')
    await talking.harness.network.misbehave({ kind: 'clear' })
    expect((await talking.inbox(number)).map(({ text }) => text)).toEqual(['first', 'second', 'third'])
  })

  test('both spellings of a Brazilian number are one chat with one order', async () => {
    const [written, real] = ['5511987650006', '551187650006']
    await talking.harness.network.misbehave({ kind: 'look_up', number: written, finds: real })
    const texts = Array.from({ length: 20 }, (_, index) => `grafia-${index}`)
    const ids: string[] = []
    for (const [index, text] of texts.entries())
      ids.push(await talking.send({ to: index % 2 === 0 ? written : real, text }))
    for (const id of ids) await talking.becomes(id, 'read')
    expect((await talking.inbox(real)).map(({ text }) => text)).toEqual(texts)
    const { chat } = await talking.receive(real, 'oi')
    expect(chat).toBe(real)
    const listed = await talking.call('GET', `/messages?chat=${written}&direction=out&limit=50`)
    expect(listed.body.data.map(({ id }: { id: string }) => id)).toEqual(ids.toReversed())
  })

  test('a received message is read by its ID, with its whole text and the user name of its sender', async () => {
    const from = '5511987650007'
    await talking.harness.network.setProfile({ from, to: talking.number.phone, username: 'davi.rocha' })
    const text = `${'x'.repeat(65_535)}👍 e o resto`
    for (const more of [{}, { group: '120363000000000556@g.us' }]) {
      const data = await talking.receive(from, text, more)
      expect(data).toMatchObject({ phone: from, lid: lidOf(from), username: 'davi.rocha', truncated: true })
      expect(data['text'] === 'x'.repeat(65_535)).toBe(true)
      const { body } = await talking.call('GET', `/messages/${data['messageId']}`)
      expect(body.data).toMatchObject({ direction: 'in', status: 'received', chat: data['chat'], whatsappId: data.id })
      expect(body.data.text === text).toBe(true)
    }
    const [contact] = (await talking.call('GET', '/contacts?search=davi.rocha')).body.data
    expect(contact).toMatchObject({ chat: from, phone: from, lid: lidOf(from), username: 'davi.rocha' })
    expect(Date.parse(contact.lastMessageAt)).toBeGreaterThan(0)
  })

  test.each([
    ['+55 11 98765-4321', '5511987654321'],
    ['5511987654321@s.whatsapp.net', '5511987654321'],
    ['5511987654321@c.us', '5511987654321'],
  ])('the refusal of %s names the correct form', async (to, corrected) => {
    const { status, body } = await talking.call('POST', '/messages/text', { to, text: 'x' })
    expect(status).toBe(400)
    expect(body.error).toMatchObject({
      code: 'invalid_phone_number',
      message: `"to" must be written as ${corrected}.`,
      details: [{ field: 'to', message: `must be written as ${corrected}` }],
    })
  })

  test('messages of both directions are listed by chat, state, direction and time', async () => {
    const number = '5511987650004'
    const group = '120363000000000444@g.us'
    const { messageId, lid } = await talking.receive(number, 'question', { name: 'Bia' })
    const first = await talking.send({ to: number, text: 'answer' })
    const second = await talking.send({ to: String(lid), text: 'by LID' })
    await talking.becomes(second, 'read')
    const inGroup = await talking.receive(number, 'to all', { group })
    const list = async (query: string) => {
      const { status, body } = await talking.call('GET', `/messages?${query}`)
      expect(status).toBe(200)
      return (body.data as { id: string }[]).map(({ id }) => id)
    }
    for (const chat of [number, String(lid)]) expect(await list(`chat=${chat}`)).toEqual([second, first, messageId])
    expect(await list(`chat=${number}&direction=in`)).toEqual([messageId])
    expect(await list(`chat=${number}&direction=out`)).toEqual([second, first])
    expect(await list(`chat=${number}&status=received`)).toEqual([messageId])
    expect(await list(`chat=${number}&status=read`)).toEqual([second, first])
    expect(await list(`chat=${group}`)).toEqual([inGroup['messageId']])
    expect((await list('limit=2')).length).toBe(2)
    const { body } = await talking.call('GET', `/messages/${second}`)
    expect(await list(`chat=${number}&since=${body.data.createdAt}`)).toEqual([second])
    const page = await talking.call('GET', `/messages?chat=${number}&limit=2`)
    expect(await list(`chat=${number}&limit=2&cursor=${page.body.nextCursor}`)).toEqual([messageId])
    for (const query of ['chat=ana', 'status=lost', 'direction=up', 'since=now', 'cursor=x'])
      expect((await talking.call('GET', `/messages?${query}`)).body.error.code).toBe('invalid_request')
  })

  test('chats are listed once, latest first, with the names of people', async () => {
    const number = '5511987650005'
    const group = '120363000000000555@g.us'
    const { lid } = await talking.receive(number, 'oi', { name: 'Ção' })
    await talking.becomes(await talking.send({ to: String(lid), text: 'x' }), 'sent', 'delivered', 'read')
    await talking.receive(number, 'to all', { group })
    const all = (await talking.call('GET', '/chats')).body.data as { chat: string }[]
    expect(all.map(({ chat }) => chat).slice(0, 2)).toEqual([group, number])
    expect(new Set(all.map(({ chat }) => chat)).size).toBe(all.length)
    expect(all[1]).toEqual({
      chat: number,
      phone: number,
      lid,
      username: null,
      name: 'Ção',
      lastMessageAt: expect.any(String),
    })
    for (const search of ['cao', '987650005']) {
      const { body } = await talking.call('GET', `/chats?search=${search}`)
      expect(body.data.map((one: { chat: string }) => one.chat)).toEqual([number])
    }
    const seen: string[] = []
    for (let cursor = ''; ; ) {
      const { body } = await talking.call('GET', `/chats?limit=2${cursor && `&cursor=${cursor}`}`)
      seen.push(...body.data.map(({ chat }: { chat: string }) => chat))
      if (body.nextCursor === null) break
      cursor = body.nextCursor
    }
    expect(seen).toEqual(all.map(({ chat }) => chat))
  })
})
