import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { otherMembers } from '../../../simulator/src/contacts/groups.ts'
import { ONE_STORE } from '../../databases/one-store.ts'
import { eventOf } from '../../receiver.ts'
import { until } from '../../until.ts'
import { Talking } from './harness.ts'

describe.each(ONE_STORE)('what happens to messages on WhatsApp, on %s', store => {
  let talking: Talking
  beforeAll(async () => {
    talking = await Talking.open(store)
  })
  afterAll(async () => talking?.[Symbol.asyncDispose]())

  const read = async (id: unknown) => (await talking.call('GET', `/messages/${id}`)).body.data
  const writeAs = (message: object) =>
    talking.harness.network.writeAs({ to: talking.number.phone, ...message } as Parameters<
      typeof talking.harness.network.writeAs
    >[0])
  const writeAsOwner = (message: object) =>
    talking.harness.network.writeAsOwner({ phone: talking.number.phone, ...message } as Parameters<
      typeof talking.harness.network.writeAsOwner
    >[0])
  const eventsAbout = (messageId: unknown) =>
    talking.events().filter(({ data }) => data['messageId'] === messageId || data.id === messageId)
  const whatsappIdOf = async (to: string, text: string) =>
    (await until(`${text} to arrive`, async () => (await talking.inbox(to)).find(one => one.text === text))).id

  test('an edit by a contact changes the text, and its deletion erases it', async () => {
    const from = '5511987654001'
    const { messageId, id, chat } = await talking.receive(from, 'errado')
    await writeAs({ from, edit: { id, text: 'certo' } })
    const edited = await talking.event('message.edited', data => data['messageId'] === messageId)
    expect(edited.data).toEqual({ id, messageId, chat, direction: 'in', by: from, text: 'certo' })
    expect(await read(messageId)).toMatchObject({ text: 'certo', editedAt: edited.timestamp, deletedAt: null })
    await writeAs({ from, delete: id })
    const deleted = await talking.event('message.deleted', data => data['messageId'] === messageId)
    expect(deleted.data).toEqual({ id, messageId, chat, direction: 'in', by: from })
    expect(await read(messageId)).toMatchObject({ id: messageId, text: null, deletedAt: deleted.timestamp })
    const [listed] = (await talking.call('GET', `/messages?chat=${from}`)).body.data
    expect(listed).toMatchObject({ id: messageId, text: null })
    expect(eventsAbout(messageId).map(({ event }) => event)).toEqual([
      'message.received',
      'message.edited',
      'message.deleted',
    ])
    // A deleted message cannot be edited.
    await writeAs({ from, edit: { id, text: 'tarde' } })
    await talking.receive(from, 'depois')
    expect(eventsAbout(messageId)).toHaveLength(3)
  })

  test('the deletion of an unknown message is reported immediately', async () => {
    const from = '5511987654002'
    const key = { remoteJid: `${talking.number.phone}@s.whatsapp.net`, fromMe: true, id: 'ABSENT' }
    await writeAs({ from, content: { protocolMessage: { key, type: 'REVOKE' } } })
    const { data } = await talking.event('message.deleted', found => found.id === 'ABSENT')
    expect(data).toEqual({ id: 'ABSENT', messageId: null, chat: from, direction: 'in', by: from })
  })

  test('what the owner writes on the phone is a message from the instance', async () => {
    const to = '5511987654003'
    const { lid } = await talking.receive(to, 'oi')
    const { id } = await writeAsOwner({ to, text: 'do telefone' })
    const { data } = await talking.event('message.written', found => found.id === id)
    const messageId = data['messageId']
    expect(data).toEqual({
      id,
      to,
      type: 'text',
      text: 'do telefone',
      messageId,
      chat: to,
      phone: to,
      lid,
      username: null,
    })
    expect(await read(messageId)).toMatchObject({
      direction: 'out',
      status: 'written',
      whatsappId: id,
      to,
      text: 'do telefone',
    })
    const own = await talking.send({ to, text: 'daqui', quote: messageId })
    expect((await talking.becomes(own, 'sent', 'delivered', 'read')).quote).toEqual({ messageId, whatsappId: id })
    const list = async (query: string) =>
      (await talking.call('GET', `/messages?chat=${to}&${query}`)).body.data.map((one: { id: string }) => one.id)
    expect(await list('direction=out')).toEqual([own, messageId])
    expect(await list('status=written')).toEqual([messageId])
    expect(await list('direction=in')).not.toContain(messageId)
    const answer = await writeAs({ from: to, text: 'resposta', quote: id })
    const received = await talking.event('message.received', found => found.id === answer.id)
    expect(received.data['quote']).toMatchObject({ messageId })
  })

  test('reactions, files and messages to groups that the owner writes are events too', async () => {
    const [from, group] = ['5511987654004', '120363000000000654@g.us']
    const received = await talking.receive(from, 'oi', { group })
    const reaction = await writeAsOwner({ to: group, reaction: { to: received.id, emoji: '👍' } })
    const { data } = await talking.event('message.written', found => found.id === reaction.id)
    expect(data).toMatchObject({ to: group, chat: group, group, type: 'reaction', phone: null, lid: null })
    expect(data['reaction']).toEqual({ messageId: received['messageId'], whatsappId: received.id, emoji: '👍' })
    const location = await writeAsOwner({
      to: from,
      content: { locationMessage: { degreesLatitude: 1.5, degreesLongitude: 2.5 } },
    })
    const placed = await talking.event('message.written', found => found.id === location.id)
    expect(placed.data).toMatchObject({ type: 'location', location: { latitude: 1.5, longitude: 2.5 } })
  })

  test('the owner edits and deletes on the phone what the instance sent, and what was written there', async () => {
    const to = '5511987654005'
    const metadata = { order: 12 }
    const own = await talking.send({ to, text: 'daqui', metadata })
    const sentId = await whatsappIdOf(to, 'daqui')
    const { id: writtenId } = await writeAsOwner({ to, text: 'de lá' })
    const written = await talking.event('message.written', data => data.id === writtenId)
    for (const [messageId, id] of [
      [own, sentId],
      [written.data['messageId'], writtenId],
    ]) {
      await writeAsOwner({ to, edit: { id, text: 'corrigido' } })
      const edited = await talking.event('message.edited', data => data['messageId'] === messageId)
      const by = talking.number.phone
      const echo = messageId === own && { metadata }
      expect(edited.data).toEqual({ id, messageId, chat: to, direction: 'out', by, text: 'corrigido', ...echo })
      expect(await read(messageId)).toMatchObject({ text: 'corrigido', editedAt: edited.timestamp })
      await writeAsOwner({ to, delete: id })
      const deleted = await talking.event('message.deleted', data => data['messageId'] === messageId)
      expect(deleted.data).toEqual({ id, messageId, chat: to, direction: 'out', by, ...echo })
      expect((await read(messageId)).text || null).toBe(null)
    }
    const kinds = eventsAbout(own).map(({ event }) => event)
    expect(kinds.indexOf('message.sent')).toBeLessThan(kinds.indexOf('message.edited'))
  })

  test('a message written on the phone can be edited and deleted through the API', async () => {
    const to = '5511987654006'
    const { id } = await writeAsOwner({ to, text: 'de lá' })
    const { messageId } = (await talking.event('message.written', data => data.id === id)).data
    for (const [method, body, shown] of [
      ['PATCH', { text: 'escrito aqui' }, 'escrito aqui'],
      ['DELETE', undefined, null],
    ] as const) {
      const command = (await talking.call(method, `/messages/${messageId}`, body)).body.data.id
      await talking.event('command.done', data => data.id === command)
      expect((await read(messageId)).text).toBe(shown)
    }
    const { database, service } = talking.harness
    const rows = await database.read('select text, extras, content from messages', service.dataDir)
    expect(rows.flatMap(row => Object.values(row)).join(' ')).not.toContain('escrito aqui')
    const message = (await talking.inbox(to)).find(one => one.id === id)
    expect(message).toMatchObject({ edited: 'escrito aqui', deleted: true })
    expect(eventsAbout(messageId).map(({ event }) => event)).not.toContain('message.edited')
    expect((await talking.call('PATCH', `/messages/${messageId}`, { text: 'x' })).body.error.code).toBe('not_editable')
  })

  test('only its author may edit a message, and only its author or an admin of the group may delete it', async () => {
    const [author, attacker, group] = ['5511987654007', '5511987654008', '120363000000000777@g.us']
    const received = await talking.receive(author, 'meu', { group })
    await talking.receive(attacker, 'oi', { group })
    const own = await talking.send({ to: group, text: 'nosso' })
    await talking.becomes(own, 'read')
    const ownId = await whatsappIdOf(author, 'nosso')
    const keys = [
      { id: received.id, remoteJid: group, fromMe: true },
      { id: received.id, remoteJid: group, fromMe: false, participant: received['lid'] },
      { id: ownId, remoteJid: group, fromMe: true },
      { id: ownId, remoteJid: group, fromMe: false, participant: `${talking.number.phone}@s.whatsapp.net` },
    ]
    for (const key of keys) {
      await writeAs({ from: attacker, group, content: { protocolMessage: { key, type: 'REVOKE' } } })
      const edit = { key, type: 'MESSAGE_EDIT', editedMessage: { conversation: 'falso' } }
      await writeAs({ from: attacker, group, content: { protocolMessage: edit } })
      // In another chat the message is unknown, so it is reported and changes nothing.
      await writeAs({ from: attacker, content: { protocolMessage: { ...edit, key: { ...key, id: `${key.id}` } } } })
    }
    await talking.receive(attacker, 'fim', { group })
    expect((await read(received['messageId'])).text).toBe('meu')
    expect((await read(own)).text).toBe('nosso')
    const changes = (id: unknown) => eventsAbout(id).filter(({ event }) => /edited|deleted/.test(event))
    expect([...changes(received['messageId']), ...changes(own)]).toEqual([])

    const members = {
      phone: talking.number.phone,
      createdGroups: new Map(),
      groupMembers: new Map(),
      networkGroups: new Set<string>(),
    }
    const admin = otherMembers(members, group)[0]!
    for (const id of [received.id, ownId]) {
      await expect(writeAs({ from: attacker, group, delete: id })).rejects.toThrow('nor is an admin')
      await writeAs({ from: admin, group, delete: id })
    }
    for (const messageId of [received['messageId'], own]) {
      const { data } = await talking.event('message.deleted', found => found['messageId'] === messageId)
      expect(data).toMatchObject({ by: admin, direction: messageId === own ? 'out' : 'in', group })
      expect((await read(messageId)).deletedAt).not.toBe(null)
    }
    const phones = await Promise.all([author, talking.number.phone].map(number => talking.inbox(number)))
    for (const id of [received.id, ownId])
      expect(phones.flat().find(message => message.id === id)).toMatchObject({ deleted: true })
  })

  test('an edit is posted after its message to each endpoint, also to one that refused the message', async () => {
    const from = '5511987654009'
    const { receiver } = talking.harness
    const url = `${receiver.url}/slow`
    expect((await talking.call('POST', `/webhooks/${talking.number.id}/endpoints`, { url })).status).toBe(201)
    const posted = (path: string, id: string) =>
      receiver.requests.filter(one => one.path.endsWith(path) && eventOf(one).data.id === id)
    let refuses = true
    receiver.answerWith(request => ({ kind: 'status', status: refuses && request.path.endsWith('/slow') ? 500 : 200 }))
    const { id } = await writeAs({ from, text: 'errado' })
    await until('the refused message', () => posted('/slow', id).length > 0)
    await writeAs({ from, edit: { id, text: 'certo' } })
    await until('the edit at the other endpoint', () => posted('/all', id).length === 2)
    refuses = false
    await until('the edit', () => posted('/slow', id).some(one => eventOf(one).event === 'message.edited'))
    const kinds = posted('/slow', id).map(one => eventOf(one).event)
    expect(kinds.indexOf('message.edited')).toBe(kinds.length - 1)
    expect(kinds.filter(kind => kind === 'message.received').length).toBeGreaterThan(1)
    receiver.answerWith({ kind: 'status', status: 200 })
  })

  test('the default endpoint receives only its five default kinds', async () => {
    const kinds = talking.harness.receiver.requests
      .filter(({ path }) => path.endsWith('/hook'))
      .map(({ body }) => JSON.parse(body.toString()).event)
    expect(kinds.length).toBeGreaterThan(0)
    expect(kinds.filter(kind => /written|edited|deleted/.test(kind))).toEqual([])
  })
})
