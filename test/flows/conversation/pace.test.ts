import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ONE_STORE } from '../../databases/one-store.ts'
import { until } from '../../until.ts'
import { Talking } from './harness.ts'

const HOUR_MS = 3_600_000
/** Kathmandu is always 5:45 ahead of UTC. */
const KATHMANDU_MS = 5.75 * HOUR_MS

/** A time zone whose day does not end soon. */
function atNoon(): string {
  const behind = new Date().getUTCHours() - 12
  return `Etc/GMT${behind < 0 ? '' : '+'}${behind}`
}

describe.each(ONE_STORE)('the pace of an instance, on %s', store => {
  let talking: Talking
  beforeAll(async () => {
    talking = await Talking.open(store)
  })
  afterAll(async () => talking?.[Symbol.asyncDispose]())

  async function pace(number: Talking['number'], method: 'GET' | 'PUT', body?: object) {
    const { service } = talking.harness
    const response = await fetch(`${service.url}/admin/v1/instances/${number.id}/pace`, {
      method,
      headers: { authorization: `Bearer ${service.adminKey}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
    // biome-ignore lint/suspicious/noExplicitAny: tests compare parts of it
    return { status: response.status, body: (await response.json()) as any }
  }

  const read = async (one: Talking, id: string) => (await one.call('GET', `/messages/${id}`)).body.data
  const waits = (one: Talking, id: string, reason: string) =>
    until(`${id} to wait for ${reason}`, async () => {
      const message = await read(one, id)
      return message.waitingFor === reason && message
    })

  test('is read and set, and a body that makes no sense is refused', async () => {
    const { number } = talking
    const off = { perMinute: null, newRecipientsPerDay: null, quietHours: null, timeZone: 'UTC', typing: false }
    expect((await pace(number, 'GET')).body.data).toEqual(off)
    const wanted = {
      perMinute: 100,
      newRecipientsPerDay: 500,
      quietHours: { from: '02:59', until: '03:00' },
      timeZone: 'Asia/Kathmandu',
      typing: false,
    }
    expect((await pace(number, 'PUT', { ...wanted, other: 1 })).body.data).toEqual(wanted)
    expect((await pace(number, 'GET')).body.data).toEqual(wanted)
    expect((await pace(number, 'PUT', { ...off, timeZone: null, typing: null })).body.data).toEqual(off)
    for (const body of [
      { perMinute: 0 },
      { timeZone: 'Mars/Olympus' },
      { quietHours: { from: '24:00', until: '07:00' } },
      { quietHours: { from: '07:00', until: '07:00' } },
    ])
      expect((await pace(number, 'PUT', body)).status).toBe(400)
    expect((await pace(number, 'PUT', { perMinute: null })).body.data).toEqual(off)
  })

  test('counts each new recipient of a day once, even across kills, but no contact and nobody who has written', async () => {
    const one = await Talking.link(talking.harness)
    const [contact, stranger, ...others] = Array.from({ length: 6 }, (_, index) => `551198764100${index}`)
    await one.receive(contact!, 'oi')
    await pace(one.number, 'PUT', { newRecipientsPerDay: 2, timeZone: atNoon() })
    const ids = await Promise.all(others.map(to => one.send({ to, text: 'olá' })))
    const sent = async () => {
      const all = await Promise.all(ids.map(id => read(one, id)))
      return all.filter(({ status }) => status !== 'queued').length
    }
    await talking.harness.kill()
    await talking.harness.service.admin.untilState(one.number.id, 'connected')
    await until('two to be sent', async () => (await sent()) === 2)
    const last = await one.send({ to: stranger!, text: 'olá' })
    const waiting = await waits(one, last, 'pace')
    expect(Date.parse(waiting.notBefore)).toBeGreaterThan(Date.now())
    await one.becomes(await one.send({ to: contact!, text: 'resposta' }), 'read')
    await one.receive(stranger!, 'oi')
    await one.becomes(last, 'read')
    expect(await sent()).toBe(2)
    await talking.harness.kill()
    await talking.harness.service.admin.untilState(one.number.id, 'connected')
    await one.becomes(await one.send({ to: contact!, text: 'outra resposta' }), 'read')
    expect(await sent()).toBe(2)
    await pace(one.number, 'PUT', { newRecipientsPerDay: null })
    for (const id of ids) await one.becomes(id, 'read')
  })

  test('lets answers go ahead of messages to strangers, and keeps the order of a chat', async () => {
    const one = await Talking.link(talking.harness)
    const [contact, stranger, other] = ['5511987642001', '5511987642002', '5511987642003']
    await one.receive(contact, 'oi')
    // In quiet hours everything waits.
    const hour = (new Date().getUTCHours() + 24 - 1) % 24
    const time = (at: number) => `${(at % 24).toString().padStart(2, '0')}:00`
    await pace(one.number, 'PUT', { perMinute: 2, quietHours: { from: time(hour), until: time(hour + 3) } })
    const first = await one.send({ to: stranger, text: 'primeira' })
    await one.send({ to: other, text: 'terceira' })
    const second = await one.send({ to: stranger, text: 'segunda' })
    const answers = [
      await one.send({ to: contact, text: 'resposta 1' }),
      await one.send({ to: contact, text: 'resposta 2' }),
    ]
    await waits(one, first, 'pace')
    await waits(one, second, 'order')
    const listed = new Map(
      (await one.call('GET', '/messages?status=queued')).body.data.map((each: { id: string }) => [each.id, each]),
    )
    for (const id of [first, second]) {
      const { waitingFor, notBefore } = await read(one, id)
      expect(listed.get(id)).toMatchObject({ waitingFor, ...(notBefore && { notBefore }) })
    }
    await pace(one.number, 'PUT', { perMinute: 2 })
    for (const id of answers) await one.becomes(id, 'read')
    await pace(one.number, 'PUT', {})
    await one.becomes(second, 'read')
    const sentAt = async (id: string) => Date.parse((await read(one, id)).sentAt)
    for (const id of answers) expect(await sentAt(id)).toBeLessThan(await sentAt(first))
    expect((await one.inbox(other)).map(({ text }) => text)).toEqual(['terceira'])
    expect((await one.inbox(stranger)).map(({ text }) => text)).toEqual(['primeira', 'segunda'])
  })

  test('grants no turn to texts that were cancelled while they waited', async () => {
    const one = await Talking.link(talking.harness)
    const hour = (new Date().getUTCHours() + 24 - 1) % 24
    const time = (at: number) => `${(at % 24).toString().padStart(2, '0')}:00`
    await pace(one.number, 'PUT', { quietHours: { from: time(hour), until: time(hour + 3) } })
    const strangers = ['5511987645001', '5511987645002', '5511987645003']
    const ids: string[] = []
    for (const to of strangers) ids.push(await one.send({ to, text: 'olá' }))
    for (const id of ids) await waits(one, id, 'pace')
    for (const id of ids.slice(0, 2)) {
      expect((await one.call('DELETE', `/messages/${id}`)).status).toBe(202)
      expect((await one.becomes(id, 'failed')).error.code).toBe('cancelled')
    }
    await pace(one.number, 'PUT', { newRecipientsPerDay: 1, timeZone: atNoon() })
    await one.becomes(ids[2]!, 'read')
  })

  test('counts the messages of a minute once, also across a kill, and says when the next may go', async () => {
    const one = await Talking.link(talking.harness)
    const { harness } = talking
    const people = ['5511987644001', '5511987644002', '5511987644003']
    for (const from of people) await one.receive(from, 'oi')
    await pace(one.number, 'PUT', { perMinute: 2 })
    const startedAt = Date.now()
    const ids: string[] = []
    for (const to of people) ids.push(await one.send({ to, text: 'resposta' }))
    const last = await until('two to be sent, and one to wait', async () => {
      const all = await Promise.all(ids.map(id => read(one, id)))
      const waiting = all.filter(({ waitingFor }) => waitingFor === 'pace')
      return all.filter(({ status }) => status !== 'queued').length === 2 && waiting[0]
    })
    expect(Date.parse(last.notBefore)).toBeGreaterThanOrEqual(startedAt + 60_000)
    await harness.kill()
    await harness.service.admin.untilState(one.number.id, 'connected')
    // A slow machine may have let the minute pass.
    const later = await read(one, last.id)
    if (later.status === 'queued') expect(later).toMatchObject({ waitingFor: 'pace', notBefore: last.notBefore })
    await pace(one.number, 'PUT', { perMinute: null })
    await one.becomes(last.id, 'read')
    for (const [index, number] of people.entries()) expect(await one.inbox(number), `${index}`).toHaveLength(1)
  })

  test('holds messages back in quiet hours until their end, by the clock of the time zone', async () => {
    const one = await Talking.link(talking.harness)
    const to = '5511987645001'
    await one.receive(to, 'oi')
    const there = new Date(Date.now() + KATHMANDU_MS)
    const from = `${there.getUTCHours().toString().padStart(2, '0')}:00`
    const end = new Date(Math.floor(there.getTime() / HOUR_MS) * HOUR_MS + 2 * HOUR_MS)
    const until = `${end.getUTCHours().toString().padStart(2, '0')}:00`
    await pace(one.number, 'PUT', { quietHours: { from, until }, timeZone: 'Asia/Kathmandu' })
    const id = await one.send({ to, text: 'de manhã' })
    const { notBefore } = await waits(one, id, 'pace')
    expect(Date.parse(notBefore)).toBe(end.getTime() - KATHMANDU_MS)
    await pace(one.number, 'PUT', { quietHours: null, timeZone: 'Asia/Kathmandu' })
    await one.becomes(id, 'read')
  })

  test('shows the recipient that the instance is typing, before the text', async () => {
    const one = await Talking.link(talking.harness)
    const to = '5511987643001'
    await pace(one.number, 'PUT', { typing: true })
    const id = await one.send({ to, text: 'x'.repeat(200) })
    await until('the indicator', async () => {
      const all = await talking.harness.network.typing(to)
      return all.some(({ from, state }) => from === one.number.phone && state === 'composing')
    })
    await one.becomes(id, 'read')
  })
})
