import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ONE_STORE } from '../../databases/one-store.ts'
import { until } from '../../until.ts'
import { type Answered, Talking } from './harness.ts'

describe.each(ONE_STORE)('the inbox of people, on %s', store => {
  let talking: Talking
  beforeAll(async () => {
    talking = await Talking.open(store)
  })
  afterAll(async () => talking?.[Symbol.asyncDispose]())

  /** Calls the management API about the instance. */
  async function call(method: string, path: string, body?: object): Promise<Answered> {
    const { service } = talking.harness
    const response = await fetch(`${service.url}/admin/v1/instances/${talking.number.id}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${service.adminKey}`,
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
    })
    return { status: response.status, headers: response.headers, body: await response.json() }
  }

  const entriesOf = async (chat: string) => (await call('GET', `/conversation?chat=${chat}`)).body.data
  const chatOf = async (chat: string) =>
    (await call('GET', '/chats')).body.data.find((entry: { chat: string }) => entry.chat === chat)

  test('a person answers with a quote, reacts, and marks as read; the conversation and the list show it', async () => {
    const from = '5511987653001'
    const question = await talking.receive(from, 'quanto custa?', { name: 'Ana' })
    const { messageId } = question
    expect(await chatOf(from)).toMatchObject({
      name: 'Ana',
      unreadCount: 1,
      lastReceivedId: messageId,
      lastMessage: { id: messageId, direction: 'in', text: 'quanto custa?' },
    })
    const mark = await call('POST', `/messages/${messageId}/read`)
    expect(mark).toMatchObject({ status: 202, body: { data: { status: 'queued' } } })
    await until('the chat to be read', async () => (await chatOf(from)).unreadCount === 0)
    const reaction = await call('PUT', `/messages/${messageId}/reaction`, { emoji: '👍' })
    const answer = await call('POST', '/messages', { to: from, text: 'dez reais', quote: messageId })
    expect([reaction.status, answer.status]).toEqual([202, 202])
    const entries = await until('the conversation', async () => {
      const found = await entriesOf(from)
      return found.every(({ status }: { status: string }) => status !== 'queued') && found
    })
    expect(entries).toMatchObject([
      { direction: 'out', id: answer.body.data.id, text: 'dez reais', quote: { messageId } },
      { direction: 'command', id: reaction.body.data.id, command: 'reaction', emoji: '👍', messageId, status: 'done' },
      { direction: 'command', id: mark.body.data.id, command: 'read', emoji: null, messageId, status: 'done' },
      { direction: 'in', id: messageId, text: 'quanto custa?' },
    ])
    const shown = await talking.inbox(from)
    expect(shown.find(({ text }) => text === 'dez reais')).toMatchObject({ quoted: question.id })
    expect(await chatOf(from)).toMatchObject({ unreadCount: 0, lastMessage: { text: 'dez reais', direction: 'out' } })
  })

  test('messages of both directions are found by their text, chats by name and number', async () => {
    const from = '5511987653002'
    await talking.receive(from, 'Onde está meu CAFÉ?', { name: 'Beatriz Lima' })
    await talking.send({ to: from, text: 'O café saiu.' })
    const { body } = await call('GET', '/messages/search?search=cafe')
    expect(body.data.map(({ text }: { text: string }) => text)).toEqual(['O café saiu.', 'Onde está meu CAFÉ?'])
    for (const search of ['beatriz', '98765-3002', 'BÉATRIZ']) {
      const found = await call('GET', `/chats?search=${encodeURIComponent(search)}`)
      expect(found.body.data.map(({ chat }: { chat: string }) => chat)).toEqual([from])
    }
  })

  test('an impossible call is refused with a code', async () => {
    const own = await talking.send({ to: '5511987653003', text: 'olá' })
    const refusals = [
      await call('GET', '/conversation?chat=nobody'),
      await call('GET', '/conversation'),
      await call('GET', '/messages/search?search='),
      await call('PUT', '/messages/msg_missing/reaction', { emoji: '👍' }),
      await call('POST', `/messages/${own}/read`),
      await call('POST', '/messages', { to: '5511987653003', text: 'x', quote: 'msg_missing' }),
      await call('POST', '/messages', { to: '5511987653003', media: 'med_missing', quote: own }),
      await call('PATCH', '/messages/search', { text: 'x' }),
    ]
    expect(refusals.map(({ status, body }) => `${status} ${body.error?.code}`)).toEqual([
      '400 invalid_request',
      '400 invalid_request',
      '400 invalid_request',
      '404 message_not_found',
      '409 not_incoming_message',
      '400 quote_not_found',
      '404 media_not_found',
      '405 method_not_allowed',
    ])
  })

  test('a person edits and deletes a message of the instance; the audit names it, but not its text', async () => {
    const to = '5511987653004'
    const id = await talking.send({ to, text: 'errado' })
    await talking.becomes(id, 'read')
    expect((await call('PATCH', `/messages/${id}`, { text: 'certo' })).status).toBe(202)
    expect((await call('DELETE', `/messages/${id}`)).status).toBe(202)
    await until('both commands', async () => {
      const [last, , message] = await entriesOf(to)
      return last.command === 'delete' && last.status === 'done' && message.editedAt !== null && message.text === ''
    })
    const { service } = talking.harness
    const answer = await fetch(`${service.url}/admin/v1/audit?instanceId=${talking.number.id}`, {
      headers: { authorization: `Bearer ${service.adminKey}` },
    })
    const { data } = (await answer.json()) as { data: { action: string; details: object }[] }
    const records = data.filter(({ action }) => ['editByHand', 'deleteByHand'].includes(action))
    expect(records.map(({ action }) => action).sort()).toEqual(['deleteByHand', 'editByHand'])
    for (const { details } of records) expect(details).toMatchObject({ messageId: id })
    expect(JSON.stringify(records)).not.toContain('certo')
  })
})
