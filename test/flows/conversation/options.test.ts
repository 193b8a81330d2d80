import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ONE_STORE } from '../../databases/one-store.ts'
import { Talking } from './harness.ts'

describe.each(ONE_STORE)('options of a text, on %s', store => {
  let talking: Talking
  beforeAll(async () => {
    talking = await Talking.open(store)
  })
  afterAll(async () => talking?.[Symbol.asyncDispose]())

  const refusalOf = async (body: object) => {
    const answer = await talking.call('POST', '/messages/text', body)
    return `${answer.status} ${answer.body.error?.code}`
  }

  test('a text quotes a received message and one of ours, by either ID', async () => {
    const to = '5511987651001'
    const question = await talking.receive(to, 'pergunta')
    const ids = [String(question['messageId']), question.id]
    const answers: string[] = []
    for (const quote of ids) answers.push(await talking.send({ to, text: 'resposta', quote }))
    answers.push(await talking.send({ to, text: 'mais uma', quote: answers[0] }))
    const last = await talking.becomes(answers.at(-1)!, 'read')
    expect(last.quote.messageId).toBe(answers[0])
    const own = await talking.call('GET', `/messages/${answers[0]}`)
    expect(own.body.data.quote).toEqual({ messageId: question['messageId'], whatsappId: question.id })
    const shown = await talking.inbox(to)
    expect(shown.map(({ quoted }) => quoted)).toEqual([question.id, question.id, last.quote.whatsappId])
    expect(shown[0]!.id).toBe(last.quote.whatsappId)
  })

  test('a file quotes a message, mentions people, waits for its moment, and has metadata in its events', async () => {
    const to = '5511987651090'
    const question = await talking.receive(to, 'pergunta')
    const { instance } = talking.number
    const { media } = await instance.sendFile('5511987651092', Buffer.from('%PDF-1.7'))
    const body = { to, media, caption: 'olá @5511987651091', mentions: ['5511987651091'] }
    const sendAt = new Date(Date.now() + 10_000).toISOString()
    const more = { quote: String(question['messageId']), metadata: { order: 7 }, sendAt }
    const answer = await talking.call('POST', '/messages/media', { ...body, ...more })
    expect(answer.status).toBe(202)
    const sent = await talking.becomes(answer.body.data.id, 'read')
    expect(sent).toMatchObject({
      quote: { whatsappId: question.id },
      metadata: { order: 7 },
      notBefore: sendAt,
      mentions: body.mentions,
    })
    const [shown] = await talking.inbox(to)
    expect(shown).toMatchObject({ quoted: question.id, media: { type: 'document', caption: body.caption } })
    const refused = await talking.call('POST', '/messages/media', { to, media, quote: 'XYZ' })
    expect(`${refused.status} ${refused.body.error.code}`).toBe('400 quote_not_found')
  })

  test('a quote of another chat or of nothing is refused', async () => {
    const to = '5511987651002'
    const { messageId } = await talking.receive('5511987651003', 'outra conversa')
    for (const quote of [String(messageId), 'msg_01kajxq8r2f0v7m3n5p9s1t4w6', 'XYZ'])
      expect(await refusalOf({ to, text: 'x', quote })).toBe('400 quote_not_found')
  })

  test("a queued message is quoted by its ID in Pombal, which the refusal of WhatsApp's ID says", async () => {
    const to = '5511987651006'
    const sendAt = new Date(Date.now() + 3_600_000).toISOString()
    const queued = await talking.send({ to, text: 'mais tarde', sendAt })
    const { whatsappId } = (await talking.call('GET', `/messages/${queued}`)).body.data
    const refused = await talking.call('POST', '/messages/text', { to, text: 'x', quote: whatsappId })
    expect(refused.body.error).toMatchObject({
      code: 'quote_not_found',
      message: expect.stringContaining('name its ID in Pombal'),
    })
    expect((await talking.call('POST', '/messages/text', { to, text: 'x', quote: queued })).status).toBe(202)
    expect((await talking.call('DELETE', `/messages/${queued}`)).status).toBe(202)
  })

  test('a text that waits behind a deletion or an edit of its quoted message does not quote the earlier text', async () => {
    const { network } = talking.harness
    const chats = Array.from({ length: 4 }, (_, chat) => `551198765104${chat}`)
    const ids = await Promise.all(chats.map(to => talking.send({ to, text: 'segredo' })))
    for (const id of ids) await talking.becomes(id, 'read')
    network.pause()
    const answers: string[] = []
    for (const [chat, to] of chats.entries()) {
      const change = chat % 2 === 0 ? ['DELETE'] : ['PATCH', { text: 'certo' }]
      const [method, body] = change as [string, object?]
      expect((await talking.call(method, `/messages/${ids[chat]}`, body)).status).toBe(202)
      answers.push(await talking.send({ to, text: 'resposta', quote: ids[chat] }))
    }
    network.resume()
    for (const id of answers) await talking.becomes(id, 'read')
    for (const [chat, to] of chats.entries()) {
      const shown = JSON.stringify((await network.inbox(to, true)).at(-1))
      expect(shown).toContain('resposta')
      expect(shown).not.toContain('segredo')
      const { data } = await talking.event('message.sent', found => found.id === answers[chat])
      expect([shown.includes('certo'), data['quoted']]).toEqual(chat % 2 === 0 ? [false, false] : [true, undefined])
    }
  })

  test('a text to the other spelling of a number quotes its message, unless that is somebody else', async () => {
    const [chat, stranger] = ['551187651021', '551187651022']
    const [to, other] = ['5511987651021', '5511987651022']
    await talking.harness.network.misbehave({ kind: 'look_up', number: to, finds: chat })
    const question = await talking.receive(chat, 'pergunta')
    const { messageId } = await talking.receive(stranger, 'outra pergunta')
    const answer = await talking.send({ to, text: 'resposta', quote: question['messageId'] })
    const unquoted = await talking.send({ to: other, text: 'resposta', quote: messageId })
    expect((await talking.event('message.sent', data => data.id === unquoted)).data['quoted']).toBe(false)
    expect((await talking.event('message.sent', data => data.id === answer)).data).not.toHaveProperty('quoted')
    expect((await talking.inbox(chat)).map(({ quoted }) => quoted)).toEqual([question.id])
    // Now it is known that these are two people.
    expect(await refusalOf({ to: other, text: 'x', quote: messageId })).toBe('400 quote_not_found')
  })

  test('a text is sent without its quote if the quoted message fails, and its event says so', async () => {
    const refused = await talking.send({ to: '15005550004', text: 'refused' })
    const again = await talking.send({ to: '15005550004', text: 'answer', quote: refused, metadata: { step: 2 } })
    await talking.becomes(again, 'failed')
    const event = await talking.event('message.failed', data => data.id === again)
    expect(event.data).toMatchObject({ metadata: { step: 2 }, quoted: false })
  })

  test('mentions, previews and metadata arrive', async () => {
    const group = '120363000000000777@g.us'
    const [one, two] = ['5511987651004', '5511987651005'] as const
    await talking.receive(one, 'oi', { group })
    await talking.receive(two, 'oi', { group })
    const to = group
    const metadata = { order: 'A-7', lines: [1, 2] }
    const some = await talking.send({ to, text: `@${one} veja`, mentions: [one], metadata })
    const preview = { url: 'https://example.com/a', title: 'Exemplo', description: 'mais' }
    const all = await talking.send({ to, text: 'todos: https://example.com/a', mentions: 'all', preview })
    await talking.becomes(all, 'read')
    const shown = (await talking.inbox(one)).filter(message => message.group === group)
    const [first, second] = shown.map(({ details }) => details.extendedTextMessage)
    expect(first.contextInfo.mentionedJid).toHaveLength(1)
    expect(second.contextInfo.mentionedJid.length).toBeGreaterThanOrEqual(3)
    expect(second.contextInfo.mentionedJid).toContain(first.contextInfo.mentionedJid[0])
    expect(second).toMatchObject({ matchedText: preview.url, title: 'Exemplo', description: 'mais' })
    for (const kind of ['message.sent', 'message.delivered', 'message.read'])
      expect((await talking.event(kind, data => data.id === some)).data['metadata']).toEqual(metadata)
    expect((await talking.call('GET', `/messages/${some}`)).body.data).toMatchObject({ mentions: [one], metadata })
  })

  test('texts and files disappear as the group wants it', async () => {
    const [one, two] = ['5511987651031', '5511987651032'] as const
    const members = [one, two, talking.number.phone]
    const { network } = talking.harness
    const to = await network.createGroup({ by: one, subject: 'Hoje', members })
    await network.changeGroup(to, { expiration: 86_400 })
    await network.changeGroup(to, { subject: 'Até amanhã' })
    await talking.event('group.changed', data => data['group'] === to && data['subject'] === 'Até amanhã')
    const quote = await talking.send({ to, text: 'um' })
    await talking.send({ to, text: 'dois', quote })
    const { id } = await talking.number.instance.sendFile(to, Buffer.from('%PDF-1.7'))
    await talking.becomes(id, 'read')
    const shown = (await network.inbox(two, true)).filter(({ group }) => group === to)
    const parts = shown.map(({ message = {} }) => message['extendedTextMessage'] ?? message['documentMessage'])
    expect(parts).toMatchObject(Array(3).fill({ contextInfo: { expiration: 86_400 } }))
  })

  test('a person is mentioned by LID, and a text has no preview if the caller does not want one', async () => {
    const to = '5511987651011'
    const { lid } = await talking.receive(to, 'oi')
    const text = `@${String(lid).split('@')[0]} https://example.com`
    const id = await talking.send({ to, text, mentions: [lid], preview: false })
    expect(await talking.becomes(id, 'read')).toMatchObject({ mentions: [lid] })
    const shown = (await talking.inbox(to))[0]?.details.extendedTextMessage
    expect(shown).toMatchObject({ text, contextInfo: { mentionedJid: [lid] } })
    expect(shown).not.toHaveProperty('title')
  })

  test.each([
    [{ mentions: 'all' }],
    [{ mentions: ['ana'] }],
    [{ metadata: { a: 'x'.repeat(1_024) } }],
    [{ metadata: [] }],
    [{ metadata: { a: ['\u0000'] } }],
    [{ metadata: { a: { '\ud800': 1 } } }],
    [{ preview: { url: 'https://example.com' } }],
    [{ preview: { url: 'javascript:alert(1)', title: 'no web page' } }],
    [{ sendAt: 'tomorrow' }],
    [{ sendAt: new Date(Date.now() + 31 * 86_400_000).toISOString() }],
  ])('%j is refused', async options => {
    expect(await refusalOf({ to: '5511987651006', text: 'x', ...options })).toBe('400 invalid_request')
  })

  test('a file with a preview, which files do not have, is sent without it', async () => {
    const to = '5511987651093'
    const { media } = await talking.number.instance.sendFile(to, Buffer.from('%PDF-1.7'))
    expect((await talking.call('POST', '/messages/media', { to, media, preview: {} })).status).toBe(202)
  })

  test('both names of the idempotency header count, and must be equal', async () => {
    const body = { to: '5511987651007', text: 'uma vez', metadata: { a: 1 } }
    const first = await talking.call('POST', '/messages/text', body, { 'idempotency-key': 'k1' })
    const again = await talking.call('POST', '/messages/text', body, { 'x-idempotency-key': 'k1' })
    expect(again.body.data.id).toBe(first.body.data.id)
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    const keys = { 'idempotency-key': 'k1', 'x-idempotency-key': 'k2' }
    expect((await talking.call('POST', '/messages/text', body, keys)).body.error.code).toBe('invalid_request')
    const other = { ...body, metadata: { a: 2 } }
    const reused = await talking.call('POST', '/messages/text', other, { 'idempotency-key': 'k1' })
    expect(reused.body.error.code).toBe('idempotency_key_reused')
    // Another call with the key, and another body, are not the same request.
    const reaction = { emoji: '👍' }
    const elsewhere = await talking.call('PUT', `/messages/${first.body.data.id}/reaction`, reaction, {
      'idempotency-key': 'k1',
    })
    expect([elsewhere.status, elsewhere.body.error.code]).toEqual([422, 'idempotency_key_reused'])
    expect(elsewhere.body.error.requestId).toBe(elsewhere.headers.get('x-request-id'))
  })

  test('a scheduled message joins the queue at its time, and delays nothing before that', async () => {
    const to = '5511987651008'
    const sendAt = new Date(Date.now() + 15_000).toISOString()
    const later = await talking.send({ to, text: 'depois', sendAt })
    const now = await talking.send({ to, text: 'agora' })
    await talking.becomes(now, 'sent', 'delivered', 'read')
    expect((await talking.call('GET', `/messages/${later}`)).body.data).toMatchObject({
      status: 'queued',
      notBefore: sendAt,
    })
    const sent = await talking.becomes(later, 'sent', 'delivered', 'read')
    expect(Date.parse(sent.sentAt)).toBeGreaterThanOrEqual(Date.parse(sendAt))
    expect((await talking.inbox(to)).map(({ text }) => text)).toEqual(['agora', 'depois'])
  })

  test('a scheduled message is cancelled by its deletion, once and for all', async () => {
    const to = '5511987651009'
    const at = Date.now() + 10_000
    const sendAt = new Date(at).toISOString()
    const id = await talking.send({ to, text: 'nunca', sendAt })
    const { status, body } = await talking.call('DELETE', `/messages/${id}`)
    expect([status, body.data.status]).toEqual([202, 'queued'])
    expect((await talking.becomes(id, 'failed')).error.code).toBe('cancelled')
    expect((await talking.event('message.failed', data => data.id === id)).data['error']).toMatchObject({
      code: 'cancelled',
    })
    await talking.event('command.done', data => data.id === body.data.id)
    const after = new Date(Math.max(at, Date.now()) + 500).toISOString()
    const next = await talking.send({ to, text: 'depois', sendAt: after })
    await talking.becomes(next, 'read')
    expect((await talking.inbox(to)).map(({ text }) => text)).toEqual(['depois'])
  })

  test('a message that waits for its connection can be cancelled, and the link stays', async () => {
    const to = '5511987651010'
    const { network } = talking.harness
    await talking.becomes(await talking.send({ to, text: 'primeira' }), 'read')
    const ends = talking.harness.endsOf(talking.number)
    network.pause()
    const sent = await talking.send({ to, text: 'escrita' })
    const waiting = await talking.send({ to, text: 'apagada' })
    const { body } = await talking.call('DELETE', `/messages/${waiting}`)
    await talking.becomes(waiting, 'failed')
    network.resume()
    await talking.becomes(sent, 'read')
    await talking.event('command.done', data => data.id === body.data.id)
    await talking.becomes(await talking.send({ to, text: 'última' }), 'read')
    expect((await talking.inbox(to)).map(({ text }) => text)).toEqual(['primeira', 'escrita', 'última'])
    expect(talking.harness.endsOf(talking.number)).toBe(ends)
  })

  test('a call that is repeated gets its first answer, whatever happened to the messages that it names', async () => {
    const to = '5511987651012'
    const quote = await talking.send({ to, text: 'pergunta' })
    await talking.becomes(quote, 'read')
    const body = { to, text: 'resposta', quote }
    const first = await talking.call('POST', '/messages/text', body, { 'idempotency-key': 'k3' })
    await talking.becomes(first.body.data.id, 'read')
    await talking.harness.service.admin.logout(talking.number.id)
    const again = await talking.call('POST', '/messages/text', body, { 'idempotency-key': 'k3' })
    expect([again.status, again.body.data.id]).toEqual([202, first.body.data.id])
  })
})
