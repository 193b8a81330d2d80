import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ONE_STORE } from '../../databases/one-store.ts'
import { Receiver } from '../../receiver.ts'
import { until } from '../../until.ts'
import { Talking } from './harness.ts'

/** A message is tried for this long. */
const TTL_MS = 12_000
const HOUR_MS = 3_600_000
const EDIT_WINDOW_MS = 15 * 60_000

describe.each(ONE_STORE)('messages that wait, on %s', store => {
  /** A web server that never answers. */
  const web = new Receiver()
  let talking: Talking
  beforeAll(async () => {
    await web.listen()
    web.answerWith({ kind: 'hang' })
    talking = await Talking.open(store, { MEDIA_ALLOWED_NETWORKS: `127.0.0.1:${web.port}` })
  })
  afterAll(async () => {
    await talking?.[Symbol.asyncDispose]()
    await web.close()
  })

  const inMs = (ms: number) => new Date(Date.now() + ms).toISOString()
  const waits = (one: Talking, id: string, reason: string) =>
    until(`${id} to wait for ${reason}`, async () => {
      const { data } = (await one.call('GET', `/messages/${id}`)).body
      return data.waitingFor === reason && data
    })

  test('each says what it waits for, and until when if that is known', async () => {
    const one = await Talking.link(talking.harness)
    const { network, service } = talking.harness
    const sendAt = inMs(HOUR_MS)
    const scheduled = await one.send({ to: '5511987656001', text: 'mais tarde', sendAt })
    expect(await waits(one, scheduled, 'schedule')).toMatchObject({ status: 'queued', notBefore: sendAt })

    const known = '5511987656002'
    await one.receive(known, 'oi')
    await network.misbehave({ kind: 'restrict', account: one.number.phone, seconds: 3_600 })
    await until('the restriction', async () => (await service.admin.connection(one.number.id)).cause === 'restricted')
    const stranger = await one.send({ to: '5511987656003', text: 'olá' })
    const restricted = await waits(one, stranger, 'restriction')
    expect(Date.parse(restricted.notBefore)).toBeGreaterThan(Date.now() + HOUR_MS / 2)
    await one.becomes(await one.send({ to: known, text: 'resposta' }), 'read')
    await network.misbehave({ kind: 'restrict', account: one.number.phone, seconds: null })
    const sent = await one.becomes(stranger, 'read')
    expect(sent).not.toHaveProperty('waitingFor')

    const body = { to: known, media: { url: `${web.url}/picture.jpg` } }
    const { data } = (await one.call('POST', '/messages/media', body)).body
    const next = await one.send({ to: known, text: 'depois do arquivo' })
    await waits(one, data.id, 'media')
    await waits(one, next, 'order')
    await one.call('DELETE', `/messages/${data.id}`)
    await one.becomes(data.id, 'failed')
    await one.becomes(next, 'read')

    await network.misbehave({ kind: 'refuse_logins', reason: '503', count: 1_000, account: one.number.phone })
    await network.misbehave({ kind: 'cut', account: one.number.phone })
    await service.admin.untilState(one.number.id, 'reconnecting')
    await waits(one, await one.send({ to: known, text: 'sem conexão' }), 'connection')
    await network.misbehave({ kind: 'clear' })
  })

  test('a scheduled one is accepted without a connection, and a logout fails it', async () => {
    const one = await Talking.link(talking.harness)
    const { network, service } = talking.harness
    const to = '5511987656010'
    await network.misbehave({ kind: 'stream_error', account: one.number.phone, conflict: 'replaced' })
    await service.admin.untilState(one.number.id, 'stopped')
    const now = await one.call('POST', '/messages/text', { to, text: 'agora' })
    expect([now.status, now.body.error.code]).toEqual([422, 'instance_not_connected'])
    const soon = await one.send({ to, text: 'já', sendAt: inMs(10_000) })
    const late = await one.send({ to, text: 'depois', sendAt: inMs(HOUR_MS) })
    await waits(one, soon, 'connection')
    await service.admin.connect(one.number.id)
    await one.becomes(soon, 'read')
    await service.admin.logout(one.number.id)
    expect((await one.becomes(late, 'failed')).error.code).toBe('instance_logged_out')
    const { data } = await one.event('message.failed', found => found.id === late)
    expect(data['error']).toMatchObject({ code: 'instance_logged_out' })
    expect((await one.inbox(to)).map(({ text }) => text)).toEqual(['já'])
  })

  test('a text is edited until 15 minutes after it was sent; a later edit fails, even if it was requested in time', async () => {
    const to = '5511987656020'
    const { network, database, service } = talking.harness
    const age = (id: string) =>
      database.run(`update messages set sent_at = sent_at - ${EDIT_WINDOW_MS} where id = '${id}'`, service.dataDir)
    const first = await talking.send({ to, text: 'primeira' })
    await talking.becomes(first, 'read')
    network.pause()
    const second = await talking.send({ to, text: 'segunda' })
    const edit = await talking.call('PATCH', `/messages/${first}`, { text: 'tarde' })
    expect(edit.status).toBe(202)
    await age(first)
    network.resume()
    const { data } = await talking.event('command.failed', found => found.id === edit.body.data.id)
    expect(data['error']).toMatchObject({ code: 'edit_window_closed' })
    await talking.becomes(second, 'read')
    await age(second)
    const refused = await talking.call('PATCH', `/messages/${second}`, { text: 'tarde' })
    expect([refused.status, refused.body.error.code]).toEqual([409, 'edit_window_closed'])
    expect((await talking.inbox(to)).map(({ text, edited }) => [text, edited])).toEqual([
      ['primeira', undefined],
      ['segunda', undefined],
    ])
    expect((await talking.call('GET', `/messages/${first}`)).body.data).toMatchObject({
      text: 'primeira',
      editedAt: null,
    })
  })
})

test.each(ONE_STORE)(
  'on %s, the age of a message counts from its scheduled time, and from the end of a pause of the pace',
  async store => {
    await using talking = await Talking.open(store, { MESSAGE_TTL_HOURS: (TTL_MS / HOUR_MS).toFixed(8) })
    const { harness, number } = talking
    const [scheduledFor, pausedFor, offlineFor] = ['5511987657001', '5511987657002', '5511987657003']
    await talking.receive(offlineFor, 'oi')
    const setPace = async (body: object) => {
      const response = await fetch(`${harness.service.url}/admin/v1/instances/${number.id}/pace`, {
        method: 'PUT',
        headers: { authorization: `Bearer ${harness.service.adminKey}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
      expect(response.status).toBe(200)
    }
    const hour = new Date().getUTCHours()
    const time = (at: number) => `${((at + 24) % 24).toString().padStart(2, '0')}:00`
    await setPace({ quietHours: { from: time(hour - 1), until: time(hour + 3) } })
    const acceptedAt = Date.now()
    const sendAt = new Date(acceptedAt + TTL_MS + 1_000).toISOString()
    const scheduled = await talking.send({ to: scheduledFor, text: 'na hora certa', sendAt })
    const paused = await talking.send({ to: pausedFor, text: 'depois da pausa' })
    await until('the messages to be older than their time to live', () => Date.now() > acceptedAt + TTL_MS + 2_000)
    for (const id of [scheduled, paused])
      expect((await talking.call('GET', `/messages/${id}`)).body.data).toMatchObject({
        status: 'queued',
        waitingFor: 'pace',
      })
    await setPace({})
    for (const id of [scheduled, paused]) await talking.becomes(id, 'read')

    await harness.network.misbehave({ kind: 'refuse_logins', reason: '503', count: 1_000, account: number.phone })
    await harness.network.misbehave({ kind: 'cut', account: number.phone })
    await harness.service.admin.untilState(number.id, 'reconnecting')
    const unsent = await talking.send({ to: offlineFor, text: 'ninguém me leva' })
    expect((await talking.becomes(unsent, 'failed')).error.code).toBe('expired')
  },
)
