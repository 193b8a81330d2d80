import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ONE_STORE } from '../../databases/one-store.ts'
import { until } from '../../until.ts'
import { Talking } from './harness.ts'

const inAnHour = () => new Date(Date.now() + 3_600_000).toISOString()

describe.each(ONE_STORE)('commands, on %s', store => {
  let talking: Talking
  beforeAll(async () => {
    talking = await Talking.open(store)
  })
  afterAll(async () => talking?.[Symbol.asyncDispose]())

  /** @returns the command's ID */
  async function request(method: string, path: string, body?: object): Promise<string> {
    const answer = await talking.call(method, path, body)
    expect(answer.status, JSON.stringify(answer.body)).toBe(202)
    const { id } = answer.body.data
    expect(id).toMatch(/^cmd_/)
    return id
  }

  /** Requests a command and waits until it is done. */
  async function run(method: string, path: string, body?: object): Promise<string> {
    return untilDone(await request(method, path, body))
  }

  async function untilDone(id: string): Promise<string> {
    const done = await until(`${id} to be done`, async () => {
      const { data } = (await talking.call('GET', `/commands/${id}`)).body
      return data.status !== 'queued' && data
    })
    expect(done).toMatchObject({ status: 'done', error: null, doneAt: expect.any(String) })
    const event = await talking.event('command.done', data => data.id === id)
    const { command, messageId, emoji } = done
    expect(event.data).toEqual({ id, command, messageId, status: 'done', ...(emoji !== undefined && { emoji }) })
    return id
  }

  const refusalOf = async (method: string, path: string, body?: object) => {
    const answer = await talking.call(method, path, body)
    return `${answer.status} ${answer.body.error?.code}`
  }

  test('a reaction arrives at a received message and at one of ours, and is removed', async () => {
    const to = '5511987652001'
    const received = await talking.receive(to, 'oi')
    const own = await talking.send({ to, text: 'olá' })
    const done = [
      await run('PUT', `/messages/${received['messageId']}/reaction`, { emoji: '👍' }),
      await run('PUT', `/messages/${own}/reaction`, { emoji: '❤️' }),
      await run('DELETE', `/messages/${received['messageId']}/reaction`),
    ]
    const commands = await Promise.all(done.map(id => talking.call('GET', `/commands/${id}`)))
    expect(commands.map(({ body }) => body.data.emoji)).toEqual(['👍', '❤️', null])
    const [text, ...reactions] = await talking.inbox(to)
    const shown = reactions.map(({ details }) => details.reactionMessage)
    expect(shown).toMatchObject([
      { key: { id: received.id, fromMe: false }, text: '👍' },
      { key: { id: text!.id, fromMe: true }, text: '❤️' },
      { key: { id: received.id, fromMe: false } },
    ])
    expect(shown[2].text || '').toBe('')
  })

  test('in a group a reaction names the author of the message', async () => {
    const [from, group] = ['5511987652002', '120363000000000888@g.us']
    const received = await talking.receive(from, 'oi', { group })
    await run('PUT', `/messages/${received['messageId']}/reaction`, { emoji: '👀' })
    const shown = (await talking.inbox(from)).find(({ details }) => details?.reactionMessage)
    expect(shown?.details.reactionMessage.key).toMatchObject({
      id: received.id,
      remoteJid: group,
      participant: received['lid'],
    })
  })

  test('an edit and a deletion arrive in the order of the chat', async () => {
    const to = '5511987652003'
    const id = await talking.send({ to, text: 'errado' })
    const edit = await request('PATCH', `/messages/${id}`, { text: 'certo' })
    const next = await talking.send({ to, text: 'seguinte' })
    await untilDone(edit)
    await talking.becomes(next, 'read')
    expect((await talking.call('GET', `/messages/${id}`)).body.data.text).toBe('certo')
    await run('DELETE', `/messages/${id}`)
    const shown = await talking.inbox(to)
    expect(shown.map(({ text, details }) => text || details.protocolMessage.type)).toEqual([
      'errado',
      'MESSAGE_EDIT',
      'seguinte',
      'REVOKE',
    ])
    const [first, edited, , deleted] = shown
    expect(edited!.details.protocolMessage).toMatchObject({
      key: { id: first!.id, fromMe: true },
      editedMessage: { extendedTextMessage: { text: 'certo' } },
    })
    expect(deleted!.details.protocolMessage.key).toMatchObject({ id: first!.id, fromMe: true })
  })

  test('the new text of an edit is erased with its message, even if the edit ends afterwards', async () => {
    const { database, service, network } = talking.harness
    const stored = async () => {
      const columns = 'text, extras, content'
      const rows = await database.read(`select ${columns} from messages`, service.dataDir)
      return rows.flatMap(row => Object.values(row)).join(' ')
    }
    const to = '5511987652015'
    const id = await talking.send({ to, text: 'errado' })
    await talking.becomes(id, 'read')
    await run('PATCH', `/messages/${id}`, { text: 'EDIT-ONE' })
    expect(await stored()).toContain('EDIT-ONE')
    network.pause()
    const deletion = await request('DELETE', `/messages/${id}`)
    const late = await request('PATCH', `/messages/${id}`, { text: 'EDIT-TWO' })
    expect(await stored()).toContain('EDIT-TWO')
    network.resume()
    await untilDone(deletion)
    const failed = await talking.event('command.failed', data => data.id === late)
    expect(failed.data['error']).toMatchObject({ code: 'message_failed' })
    expect(await stored()).not.toMatch(/EDIT-(ONE|TWO)/)
    const shown = (await talking.inbox(to)).map(({ text, details }) => text || details.protocolMessage.type)
    expect(shown).toEqual(['errado', 'MESSAGE_EDIT', 'REVOKE'])
    expect((await talking.call('GET', `/commands/${late}`)).body.data).toMatchObject({ command: 'edit', messageId: id })
  })

  test('a read mark reaches WhatsApp', async () => {
    const received = await talking.receive('5511987652004', 'leia')
    const when = { stanza: 'receipt', direction: 'in', attrs: { type: 'read' } } as const
    const { rule } = await talking.harness.network.misbehave({
      kind: 'rule',
      rule: { when, do: { delayMs: 0 } },
    } as never)
    await run('POST', `/messages/${received['messageId']}/read`)
    const { rules } = await talking.harness.network.scenario()
    expect(rules.find(({ id }) => id === rule)?.fitted).toBe(1)
  })

  test.each(['15005550001', '15005550004', '120363000000000001@g.us'])(
    'a command on a message to %s, which fails, fails with message_failed',
    async to => {
      const id = await talking.send({ to, text: 'ninguém' })
      const commands = [await request('PUT', `/messages/${id}/reaction`, { emoji: '👍' })]
      await talking.becomes(id, 'failed')
      commands.push(await request('PATCH', `/messages/${id}`, { text: 'alguém' }))
      commands.push(await request('DELETE', `/messages/${id}`))
      for (const command of commands) {
        const { data } = await talking.event('command.failed', found => found.id === command)
        expect(data['error']).toMatchObject({ code: 'message_failed' })
      }
    },
  )

  test('a command on a cancelled message fails, is never sent, and its call can be repeated', async () => {
    const to = '5511987652008'
    const id = await talking.send({ to, text: 'nunca', sendAt: inAnHour() })
    const withKey = () => talking.call('DELETE', `/messages/${id}`, undefined, { 'idempotency-key': 'cancel-1' })
    const waiting = await request('PUT', `/messages/${id}/reaction`, { emoji: '👀' })
    const { data: cancellation } = (await withKey()).body
    await talking.event('message.failed', data => data.id === id)
    const commands = [
      waiting,
      await request('DELETE', `/messages/${id}`),
      await request('PUT', `/messages/${id}/reaction`, { emoji: '👍' }),
    ]
    for (const command of commands) {
      const { data } = await talking.event('command.failed', found => found.id === command)
      expect(data).toMatchObject({ messageId: id, error: { code: 'message_failed' } })
    }
    expect(await refusalOf('PATCH', `/messages/${id}`, { text: 'x' })).toBe('409 not_editable')
    expect(await withKey()).toMatchObject({ status: 202, body: { data: cancellation } })
    await talking.becomes(await talking.send({ to, text: 'fim' }), 'read')
    expect((await talking.inbox(to)).map(({ text }) => text)).toEqual(['fim'])
  })

  test('concurrent deletions of a scheduled message report its failure once', async () => {
    const id = await talking.send({ to: '5511987652007', text: 'depois', sendAt: inAnHour() })
    const answers = await Promise.all(Array.from({ length: 30 }, () => talking.call('DELETE', `/messages/${id}`)))
    expect(answers.map(({ status }) => status)).toContain(202)
    await talking.event('message.failed', data => data.id === id)
    const commands = answers.filter(({ status }) => status === 202).map(({ body }) => body.data.id)
    for (const command of commands)
      await until(`${command} to end`, () => talking.events().some(({ data }) => data.id === command))
    const failures = talking.events().filter(({ event, data }) => event === 'message.failed' && data.id === id)
    expect(failures).toHaveLength(1)
  })

  test('an impossible command is refused', async () => {
    const to = '5511987652005'
    const { messageId: received } = await talking.receive(to, 'oi')
    const own = await talking.send({ to, text: 'olá' })
    expect(await refusalOf('PATCH', `/messages/${received}`, { text: 'x' })).toBe('409 not_own_message')
    expect(await refusalOf('DELETE', `/messages/${received}`)).toBe('409 not_own_message')
    expect(await refusalOf('POST', `/messages/${own}/read`)).toBe('409 not_incoming_message')
    for (const id of ['msg_01kajxq8r2f0v7m3n5p9s1t4w6', 'x'])
      expect(await refusalOf('DELETE', `/messages/${id}`)).toBe('404 message_not_found')
    expect(await refusalOf('PUT', `/messages/${own}/reaction`, { emoji: '' })).toBe('400 invalid_request')
    expect(await refusalOf('PATCH', `/messages/${own}`, { text: 7 })).toBe('400 invalid_request')
    expect(await refusalOf('GET', '/commands/cmd_01kajxq8r2f0v7m3n5p9s1t4w6')).toBe('404 command_not_found')
    expect(await refusalOf('GET', `/commands/${own}`)).toBe('404 command_not_found')
    const { body } = await talking.call('POST', `/messages/${received}/read`)
    expect(await refusalOf('GET', `/messages/${body.data.id}`)).toBe('404 message_not_found')
    const { bytes } = { bytes: Buffer.from('a document') }
    const { id: file } = await talking.number.instance.sendFile(to, bytes)
    expect(await refusalOf('PATCH', `/messages/${file}`, { text: 'x' })).toBe('409 not_editable')
  })

  test('a command with an idempotency key is executed once', async () => {
    const to = '5511987652006'
    const own = await talking.send({ to, text: 'olá' })
    const react = (emoji: string) =>
      talking.call('PUT', `/messages/${own}/reaction`, { emoji }, { 'idempotency-key': 'reaction-1' })
    const [one, two] = await Promise.all([react('🎉'), react('🎉')])
    expect(one.body.data.id).toBe(two.body.data.id)
    expect((await react('👎')).body.error.code).toBe('idempotency_key_reused')
    await talking.event('command.done', data => data.id === one.body.data.id)
    await talking.becomes(await talking.send({ to, text: 'fim' }), 'read')
    expect((await talking.inbox(to)).filter(({ details }) => details?.reactionMessage)).toHaveLength(1)
  })

  test('commands are not messages: the list of messages contains none', async () => {
    const { body } = await talking.call('GET', '/messages?limit=200')
    expect((body.data as { id: string }[]).every(({ id }) => id.startsWith('msg_'))).toBe(true)
  })
})
