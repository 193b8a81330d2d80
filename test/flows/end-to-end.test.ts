import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import type { InstanceClient, NewInstance } from '../api-client.ts'
import { createDatabase, STORES, type TestDatabase } from '../databases/database.ts'
import { CONDITION_WITHIN_MS } from '../deadlines.ts'
import { eventOf, isSigned, isStandardSigned, type ReceivedEvent, Receiver } from '../receiver.ts'
import { Service } from '../service.ts'
import { until } from '../until.ts'

const ORDINARY = '5511987654321'
const GROUP = '120363000000000042@g.us'
const ECHO = '15005550005'
const ALL_THREE = ['message.sent', 'message.delivered', 'message.read']
/** Enough messages to one recipient that some are still queued at the next call. */
const BURST = 60

/** The messages, and all events of each. */
const MEANINGS: [to: string, events: string[], error?: { code: string; says: RegExp }][] = [
  [ORDINARY, ALL_THREE],
  ['15005550001', ['message.failed'], { code: 'recipient_not_on_whatsapp', says: /not on WhatsApp/ }],
  ['15005550002', ['message.sent', 'message.delivered']],
  ['15005550003', ['message.sent']],
  ['15005550004', ['message.failed'], { code: 'rejected_by_whatsapp', says: /421/ }],
  [ECHO, ALL_THREE],
  ['15005550006', ALL_THREE],
  [GROUP, ALL_THREE],
  ['120363000000000001@g.us', ['message.failed'], { code: 'not_a_group_member', says: /not a member/ }],
]

describe.each(STORES)('the main job on %s', store => {
  let database: TestDatabase
  let service: Service
  let receiver: Receiver
  let instance: InstanceClient

  beforeAll(async () => {
    database = await createDatabase(store, inject('postgresUrl'))
    service = new Service({ env: database.env })
    receiver = await new Receiver().listen()
    await service.start()
    instance = await addInstance()
  })

  afterAll(async () => {
    await service?.dispose()
    await receiver?.close()
    await database?.dispose()
  })

  /** Connected, and with the receiver as its webhook. */
  async function addInstance(): Promise<InstanceClient> {
    const { id, token }: NewInstance = await service.admin.createConnected()
    const client = service.instance(id, token)
    await client.setWebhook(receiver.url)
    return client
  }

  function eventsOf(id: string): ReceivedEvent[] {
    return receiver.events.filter(({ data }) => data.id === id)
  }

  function kindsOf(id: string): string[] {
    return eventsOf(id).map(({ event }) => event)
  }

  function untilTold(id: string, kinds: readonly string[]): Promise<unknown> {
    return until(`${kinds.at(-1)} of ${id}`, () => kindsOf(id).length >= kinds.length)
  }

  function untilReceived(text: string): Promise<ReceivedEvent> {
    return until(`"${text}" to be received`, () =>
      receiver.events.find(({ event, data }) => event === 'message.received' && data['text'] === text),
    )
  }

  /** Sends texts one after the other, faster than they can go out. */
  async function sendBurst(client: InstanceClient): Promise<string[]> {
    const ids: string[] = []
    for (let n = 1; n <= BURST; n++) ids.push((await client.send(ORDINARY, `burst ${n}`)).id)
    return ids
  }

  /** Only half of them are sent immediately. The others wait for the next minute. */
  async function sendBurstThatWaits(client: InstanceClient): Promise<string[]> {
    await service.admin.setPace(client.id, { perMinute: BURST / 2 })
    return sendBurst(client)
  }

  test('a text to every special number is reported, in order, to its last state and no further', async () => {
    const sent = await Promise.all(
      MEANINGS.map(async ([to, kinds, error], n) => {
        const { id } = await instance.send(to, `meaning ${n} 👋\nsecond line`)
        return { to, id, kinds, error }
      }),
    )
    for (const { id, kinds } of sent) await untilTold(id, kinds)
    for (const { id, to, kinds, error } of sent) {
      expect(kindsOf(id), to).toEqual(kinds)
      for (const { event, data } of eventsOf(id)) {
        const failed = event === 'message.failed' && { error: { code: error?.code, message: expect.any(String) } }
        expect(data).toEqual({ id, to, status: event.replace('message.', ''), ...failed })
      }
      const { status, error: failure } = await instance.message(id)
      expect(`message.${status}`).toBe(kinds.at(-1))
      if (error) {
        expect(failure).toMatchObject({ code: error.code, message: expect.stringMatching(error.says) })
        expect(eventsOf(id)[0]?.data['error']).toEqual(failure)
      }
    }
  })

  test('a contact delivers 200 ms and reads 600 ms after WhatsApp has the message', async () => {
    const { id } = await instance.send(ORDINARY, 'how long?')
    await untilTold(id, ALL_THREE)
    const { createdAt, deliveredAt, readAt } = await instance.message(id)
    const afterMs = (moment: string | null) => Date.parse(moment ?? '') - Date.parse(createdAt)
    expect(afterMs(deliveredAt)).toBeGreaterThanOrEqual(200)
    expect(afterMs(readAt)).toBeGreaterThanOrEqual(600)
    expect(afterMs(readAt)).toBeLessThan(CONDITION_WITHIN_MS)
  })

  test("the echo number's reply is received", async () => {
    const { id } = await instance.send(ECHO, 'are you there?')
    const { data } = await untilReceived('are you there?')
    expect(data).toMatchObject({ from: ECHO, type: 'text' })
    expect(data).not.toHaveProperty('group')
    await untilTold(id, ALL_THREE)
  })

  test('a group message is received with its sender', async () => {
    const written = { from: ORDINARY, text: 'hello, everybody', group: GROUP, name: 'Ana' }
    const { id } = await service.admin.writeAsContact(instance.id, written)
    const { data, timestamp } = await untilReceived(written.text)
    // WhatsApp's own time, which has whole seconds.
    expect(timestamp).toMatch(/\.000Z$/)
    expect(Math.abs(Date.parse(timestamp) - Date.now())).toBeLessThan(CONDITION_WITHIN_MS)
    expect(data).toEqual({
      id,
      messageId: expect.stringMatching(/^msg_/),
      from: ORDINARY,
      chat: GROUP,
      phone: ORDINARY,
      lid: expect.stringMatching(/^\d+@lid$/),
      username: null,
      type: 'text',
      text: written.text,
      group: GROUP,
      name: 'Ana',
    })
  })

  test('an instance that was linked is connected again after a restart, and nothing is lost or repeated', async () => {
    const { phone } = await service.admin.connection(instance.id)
    const ids = await sendBurst(instance)
    await service.restart()
    const more = await instance.send(ORDINARY, 'accepted before it is connected again')
    const connection = await service.admin.untilState(instance.id, 'connected')
    expect(connection).toMatchObject({ phone, qr: null })
    for (const id of [...ids, more.id]) await untilTold(id, ALL_THREE)
    for (const id of [...ids, more.id]) expect(kindsOf(id)).toEqual(ALL_THREE)

    await service.admin.writeAsContact(instance.id, { from: ORDINARY, text: 'still there?' })
    await untilReceived('still there?')
  })

  test('deleting an instance fails and reports queued messages, and then leaves no row behind', async () => {
    const other = await addInstance()
    const ids = await sendBurstThatWaits(other)
    expect(await database.countRowsOf(other.id, service.dataDir)).toBeGreaterThan(ids.length)
    await service.admin.deleteInstance(other.id)

    await expect(other.send(ORDINARY, 'too late')).rejects.toMatchObject({ status: 401, code: 'invalid_token' })
    await expect(service.admin.connection(other.id)).rejects.toMatchObject({ code: 'instance_not_found' })
    for (const id of ids) await untilTold(id, ['sent or failed'])
    const failed = ids.flatMap(eventsOf).filter(({ event }) => event === 'message.failed')
    expect(failed.length).toBeGreaterThan(0)
    // A message that was written but not acknowledged when the instance was deleted may have arrived.
    for (const { data } of failed)
      expect(['instance_deleted', 'unconfirmed']).toContain((data['error'] as { code: string }).code)
    await until('its rows to go', async () => (await database.countRowsOf(other.id, service.dataDir)) === 0)
    expect(ids.filter(id => kindsOf(id).includes('message.sent') && kindsOf(id).includes('message.failed'))).toEqual([])
    expect((await instance.instance()).state).toBe('connected')
  })

  test('logging out fails queued messages, and a new message is refused', async () => {
    const other = await addInstance()
    const replayable = await other.send(ORDINARY, 'first', 'the-key')
    const ids = await sendBurstThatWaits(other)
    await service.admin.logout(other.id)
    await service.admin.untilState(other.id, 'logged_out')

    for (const id of ids) await untilTold(id, ['sent or failed'])
    const failed = ids.flatMap(eventsOf).filter(({ event }) => event === 'message.failed')
    expect(failed.length).toBeGreaterThan(0)
    for (const { data } of failed) expect(data['error']).toMatchObject({ code: 'instance_logged_out' })
    await expect(other.send(ORDINARY, 'too late')).rejects.toMatchObject({
      status: 422,
      code: 'instance_not_connected',
    })
    expect(await other.send(ORDINARY, 'first', 'the-key')).toEqual({ id: replayable.id, replayed: true })
  })

  test('every event was posted once, with both signatures', async () => {
    const secrets = new Map([[instance.id, (await instance.webhook()).secret]])
    const own = receiver.requests.filter(request => eventOf(request).instanceId === instance.id)
    expect(own.length).toBeGreaterThan(BURST)
    for (const request of own) {
      const body = eventOf(request)
      const secret = secrets.get(body.instanceId) ?? ''
      expect(Object.keys(body)).toEqual(['event', 'instanceId', 'timestamp', 'data'])
      expect(body.timestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      expect(request.headers).toMatchObject({
        'content-type': 'application/json',
        'user-agent': expect.stringMatching(/^Pombal\/\d/),
        'x-service-event': body.event,
        'x-service-attempt': '1',
      })
      expect(isSigned(request, secret)).toBe(true)
      expect(isStandardSigned(request, secret)).toBe(true)
    }
    const listed = await service.admin.listEvents(instance.id, '?limit=200')
    const latest = own
      .slice(-BURST)
      .map(request => ({ id: request.headers['webhook-id'], event: eventOf(request).event }))
    for (const { id, event } of latest) expect(listed).toContainEqual(expect.objectContaining({ id, event }))
    const ids = receiver.requests.map(({ headers }) => headers['webhook-id'])
    expect(new Set(ids).size).toBe(ids.length)
  })

  test('the timestamps of a message never go back', () => {
    const byMessage = Map.groupBy(receiver.events, ({ data }) => data.id)
    for (const events of byMessage.values()) {
      const moments = events.map(({ timestamp }) => timestamp)
      expect(moments).toEqual(moments.toSorted())
    }
  })
})
