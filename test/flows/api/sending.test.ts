import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { RECONNECTING_MS } from '../../../src/domain/connection/connection.ts'
import { ONE_STORE } from '../../databases/one-store.ts'
import { until } from '../../until.ts'
import { ApiHarness, type Created } from './harness.ts'

const TO = '5511987654321'

describe.each(ONE_STORE)('on %s', on => {
  let api: ApiHarness
  let instance: Created

  beforeAll(async () => {
    api = await ApiHarness.start({ on })
    instance = await api.createConnected()
  })
  afterAll(() => api[Symbol.asyncDispose]())

  describe('POST /v1/messages/text', () => {
    test('an accepted message can be read unchanged under the returned ID', async () => {
      const text = 'Olá! 👋🏽\nSecond line\t"quoted" \\ \u2028 end'
      const answer = await api.send(instance, { to: TO, text, unknown: { ignored: true } })
      expect(answer.status).toBe(202)
      expect(answer.body).toEqual({ data: { id: expect.stringMatching(/^msg_[0-9a-z]{26}$/), status: 'queued' } })
      expect(answer.headers.get('idempotent-replayed')).toBeNull()

      const queued = await api.store.messages.listQueued(instance.id, 1_000)
      const stored = queued.find(message => message.id === answer.body.data.id)
      expect(stored).toMatchObject({ to: TO, text, instanceId: instance.id, prepared: null })
      expect(stored?.whatsappId).toMatch(/^3EB0[0-9A-F]{18}$/)
    })

    test.each([TO, '1234567', '123456789012345', '120363041234567890@g.us', '5511987654321-1398765432@g.us'])(
      'accepts %s as a recipient',
      async to => {
        expect((await api.send(instance, { to, text: 'x' })).status).toBe(202)
      },
    )

    test.each([
      ['', 'empty'],
      ['123456', 'too short'],
      ['1234567890123456', 'too long'],
      ['0511987654321', 'leading zero'],
      ['+5511987654321', 'plus sign'],
      ['55 11 98765-4321', 'separators'],
      ['٥٥١١٩٨٧٦٥٤٣', 'digits that are not ASCII'],
      ['5511987654321\n', 'line break'],
      ['5511987654321@s.whatsapp.net', 'the JID of a number'],
      ['@g.us', 'a group without digits'],
      ['1-2-3@g.us', 'a group with too many parts'],
      ['120363041234567890@G.US', 'a group in capitals'],
      ['status@broadcast', 'the status broadcast'],
      [`${'1'.repeat(100)}@g.us`, 'an endless group'],
      ['5511987654321\u0000', 'U+0000'],
      ['\ud800', 'a lone surrogate'],
    ])('%j is not a recipient (%s)', async to => {
      const answer = await api.send(instance, JSON.stringify({ to, text: 'x' }))
      expect(answer.status).toBe(400)
      expect(answer.body.error.code).toBe('invalid_phone_number')
      expect(answer.body.error.message).toContain('to')
    })

    test.each([
      ['no "to"', { text: 'x' }, 'to'],
      ['no "text"', { to: TO }, 'text'],
      ['a number as "to"', { to: 5511987654321, text: 'x' }, 'to'],
      ['null as "to"', { to: null, text: 'x' }, 'to'],
      ['a list as "to"', { to: [TO], text: 'x' }, 'to'],
      ['a number as "text"', { to: TO, text: 1 }, 'text'],
      ['null as "text"', { to: TO, text: null }, 'text'],
      ['an empty text', { to: TO, text: '' }, 'text'],
      ['a text longer than 65,536 UTF-16 units', { to: TO, text: 'x'.repeat(65_537) }, 'text'],
      ['emojis of more than 65,536 UTF-16 units', { to: TO, text: '👋'.repeat(32_769) }, 'text'],
      ['U+0000 in the text', { to: TO, text: 'a\u0000b' }, 'text'],
      ['a lone high surrogate', { to: TO, text: 'a\ud83d' }, 'text'],
      ['a lone low surrogate', { to: TO, text: '\udc4ba' }, 'text'],
    ])('%s is an invalid request that names the field', async (_what, body, field) => {
      const answer = await api.send(instance, JSON.stringify(body))
      expect(answer.status).toBe(400)
      expect(answer.body.error.code).toBe('invalid_request')
      expect(answer.body.error.message).toContain(`"${field}"`)
      expect(answer.body.error.details[0].field).toBe(field)
    })

    test('a text of exactly 65,536 UTF-16 units is accepted, even with multi-byte characters', async () => {
      expect((await api.send(instance, { to: TO, text: 'é'.repeat(65_536) })).status).toBe(202)
      expect((await api.send(instance, { to: TO, text: '👋'.repeat(32_768) })).status).toBe(202)
    })

    test.each(['null', '[]', '"x"', '1', 'true', '', '{', '{"to":', 'nonsense', '{"a":1}x', '[{"to":"x"}]'])(
      'the body %j is not a JSON object',
      async body => {
        const answer = await api.send(instance, body)
        expect(answer.status).toBe(400)
        expect(answer.body.error.code).toBe('invalid_request')
      },
    )

    test('a field called __proto__ or constructor is ignored like any unknown one', async () => {
      const body = `{"__proto__":{"to":"x"},"constructor":{"prototype":{}},"to":"${TO}","text":"x"}`
      expect((await api.send(instance, body)).status).toBe(202)
      expect((await api.send(instance, `{"__proto__":{"to":"${TO}","text":"x"}}`)).status).toBe(400)
    })

    test('if a key is duplicated, its last value counts, as in JSON.parse', async () => {
      const { body } = await api.send(instance, `{"to":"x","to":"${TO}","text":"a","text":"b"}`)
      const { body: message } = await api.call({ path: `/v1/messages/${body.data.id}`, key: instance.token })
      expect(message.data).toMatchObject({ to: TO, text: 'b' })
    })
  })

  describe('the connection', () => {
    test.each(['unlinked', 'linking', 'connecting', 'stopped', 'logged_out'] as const)('%s: 422', async state => {
      const other = await api.createInstance()
      if (state !== 'unlinked') await api.record(other.id, { state, reason: state })
      const answer = await api.send(other, { to: TO, text: 'x' })
      expect(answer.status).toBe(422)
      expect(answer.body.error.code).toBe('instance_not_connected')
    })

    test('an instance that just lost its socket still accepts', async () => {
      const other = await api.createConnected()
      await api.record(other.id, { state: 'reconnecting', reason: 'Lost.' })
      expect((await api.send(other, { to: TO, text: 'x' })).status).toBe(202)
    })

    test('an instance that is offline for more than 5 minutes accepts nothing, and is disconnected', async () => {
      // A test cannot move the store's clock. An instance that was never connected counts as one that has been offline for longer.
      expect(RECONNECTING_MS).toBe(300_000)
      const other = await api.createInstance()
      await api.record(other.id, { state: 'reconnecting', reason: 'Never was connected.' })
      const answer = await api.send(other, { to: TO, text: 'x' })
      expect(answer.body.error?.code).toBe('instance_not_connected')
      const { body } = await api.call({ path: '/v1/instance', key: other.token })
      expect(body.data.state).toBe('disconnected')
    })

    test('a malformed body is reported before a missing connection', async () => {
      const other = await api.createInstance()
      expect((await api.send(other, { to: 'x', text: 'x' })).body.error.code).toBe('invalid_phone_number')
      expect((await api.send(other, { to: TO })).body.error.code).toBe('invalid_request')
    })
  })

  describe('X-Idempotency-Key', () => {
    const body = { to: TO, text: 'once' }

    test('the same key and body returns the first ID as queued, marked as a replay', async () => {
      const key = randomUUID()
      const first = await api.send(instance, body, { 'x-idempotency-key': key })
      const again = await api.send(instance, { ...body, other: 1 }, { 'x-idempotency-key': key })
      expect(again.status).toBe(202)
      expect(again.body).toEqual({ data: { id: first.body.data.id, status: 'queued' } })
      expect(first.headers.get('idempotent-replayed')).toBeNull()
      expect(again.headers.get('idempotent-replayed')).toBe('true')
    })

    test('a replay says queued even if the message has moved on', async () => {
      const key = randomUUID()
      const first = await api.send(instance, body, { 'x-idempotency-key': key })
      await api.progress(instance, first.body.data.id, 'read')
      const again = await api.send(instance, body, { 'x-idempotency-key': key })
      expect(again.body.data).toEqual({ id: first.body.data.id, status: 'queued' })
    })

    test.each([
      ['another text', { to: TO, text: 'twice' }],
      ['another recipient', { to: '5511987654322', text: 'once' }],
    ])('the same key with %s is refused', async (_what, other) => {
      const key = randomUUID()
      await api.send(instance, body, { 'x-idempotency-key': key })
      const answer = await api.send(instance, other, { 'x-idempotency-key': key })
      expect(answer.status).toBe(422)
      expect(answer.body.error.code).toBe('idempotency_key_reused')
    })

    test('a replay works even if the instance is no longer connected', async () => {
      const other = await api.createConnected()
      const key = randomUUID()
      const first = await api.send(other, body, { 'x-idempotency-key': key })
      await api.record(other.id, { state: 'logged_out', reason: 'Logged out.' })
      const again = await api.send(other, body, { 'x-idempotency-key': key })
      expect([again.status, again.body.data.id]).toEqual([202, first.body.data.id])
      expect((await api.send(other, { ...body, text: 'new' }, { 'x-idempotency-key': key })).body.error.code).toBe(
        'idempotency_key_reused',
      )
      expect((await api.send(other, body, { 'x-idempotency-key': randomUUID() })).status).toBe(422)
    })

    test('only a 202 stores the key', async () => {
      const other = await api.createInstance()
      const key = randomUUID()
      expect((await api.send(other, body, { 'x-idempotency-key': key })).status).toBe(422)
      expect((await api.send(other, { to: 'x', text: 'x' }, { 'x-idempotency-key': key })).status).toBe(400)
      await api.record(other.id, { state: 'connected', reason: 'Connected.' })
      const answer = await api.send(other, { to: TO, text: 'another' }, { 'x-idempotency-key': key })
      expect(answer.status).toBe(202)
      expect(answer.headers.get('idempotent-replayed')).toBeNull()
    })

    test('a key belongs to its instance', async () => {
      const other = await api.createConnected()
      const key = randomUUID()
      const one = await api.send(instance, body, { 'x-idempotency-key': key })
      const two = await api.send(other, { to: TO, text: 'other' }, { 'x-idempotency-key': key })
      expect([one.status, two.status]).toEqual([202, 202])
      expect(one.body.data.id).not.toBe(two.body.data.id)
    })

    test.each(['', ' ', 'a b', 'x'.repeat(256), 'é', 'a\tb'])('%j is malformed', async key => {
      const answer = await api.send(instance, body, { 'x-idempotency-key': key })
      expect(answer.status).toBe(400)
      expect(answer.body.error.code).toBe('invalid_request')
      expect(answer.body.error.message).toContain('X-Idempotency-Key')
    })

    test('a malformed key is reported before a missing connection, and a malformed body before a replay', async () => {
      const other = await api.createInstance()
      expect((await api.send(other, body, { 'x-idempotency-key': 'a b' })).body.error.code).toBe('invalid_request')
      const key = randomUUID()
      expect((await api.send(instance, body, { 'x-idempotency-key': key })).status).toBe(202)
      const answer = await api.send(instance, { ...body, to: 'x' }, { 'x-idempotency-key': key })
      expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_phone_number'])
    })

    test.each(['!', '~'.repeat(255), randomUUID()])('%j is well formed', async key => {
      expect((await api.send(instance, body, { 'x-idempotency-key': key })).status).toBe(202)
    })

    test('of 50 concurrent calls exactly one creates a message, and all return its ID', async () => {
      const other = await api.createConnected()
      const key = randomUUID()
      const answers = await Promise.all(
        Array.from({ length: 50 }, () => api.send(other, body, { 'x-idempotency-key': key })),
      )
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]))
      expect(new Set(answers.map(answer => answer.body.data.id)).size).toBe(1)
      expect(answers.filter(({ headers }) => headers.get('idempotent-replayed') === null)).toHaveLength(1)
      expect(await api.store.messages.listQueued(other.id, 100)).toHaveLength(1)
    })

    test('of concurrent calls with one key and two bodies, one body wins and the other is refused', async () => {
      const other = await api.createConnected()
      const key = randomUUID()
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, n) =>
          api.send(other, { to: TO, text: n % 2 ? 'odd' : 'even' }, { 'x-idempotency-key': key }),
        ),
      )
      expect(answers.filter(({ status }) => status === 202)).toHaveLength(10)
      expect(answers.filter(({ body }) => body.error?.code === 'idempotency_key_reused')).toHaveLength(10)
      expect(await api.store.messages.listQueued(other.id, 100)).toHaveLength(1)
    })
  })

  describe('GET /v1/messages/{id}', () => {
    test('reports how far the message got, with null for each step not reached', async () => {
      const own = await api.createConnected()
      const { body } = await api.send(own, { to: TO, text: 'follow me' })
      const { id } = body.data
      const read = async () => (await api.call({ path: `/v1/messages/${id}`, key: own.token })).body.data
      const queued = await read()
      expect(queued).toEqual({
        id,
        whatsappId: expect.stringMatching(/^[0-9A-F]{16,}$/),
        direction: 'out',
        status: 'queued',
        to: TO,
        text: 'follow me',
        createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        sentAt: null,
        deliveredAt: null,
        readAt: null,
        failedAt: null,
        editedAt: null,
        deletedAt: null,
        error: null,
      })
      await api.progress(own, id, 'sent')
      const sent = await read()
      expect(sent).toMatchObject({ status: 'sent', sentAt: expect.any(String), whatsappId: queued.whatsappId })
      await until('a later moment', () => Date.now() > Date.parse(sent.sentAt))
      await api.progress(own, id, 'read')
      const last = await read()
      expect(last).toMatchObject({ status: 'read', failedAt: null })
      expect(last.sentAt <= last.deliveredAt && last.deliveredAt <= last.readAt).toBe(true)
    })

    test('a failed message reports the reason', async () => {
      const { body } = await api.send(instance, { to: TO, text: 'in vain' })
      const lease = await api.lease(instance.id)
      const queued = await api.store.messages.listQueued(instance.id, 1_000)
      const message = queued.find(({ id }) => id === body.data.id)!
      const failure = { code: 'recipient_not_on_whatsapp', message: 'Not on WhatsApp.' } as const
      await api.store.messages.recordFailure(lease, message, failure, Date.now())
      const answer = await api.call({ path: `/v1/messages/${body.data.id}`, key: instance.token })
      expect(answer.body.data).toMatchObject({ status: 'failed', failedAt: expect.any(String), error: failure })
    })

    test('a message of another instance is not found, nor is an unknown ID', async () => {
      const other = await api.createConnected()
      const { body } = await api.send(other, { to: TO, text: 'mine' })
      const ids = [
        body.data.id,
        'msg_00000000000000000000000000',
        'x',
        '%00',
        '%zz',
        '..%2f',
        'a'.repeat(5_000),
        '%F0%9F%91%8B',
      ]
      for (const id of ids) {
        const answer = await api.call({ path: `/v1/messages/${id}`, key: instance.token })
        expect([id, answer.status, answer.body.error.code]).toEqual([id, 404, 'message_not_found'])
      }
    })
  })

  test('GET /v1/instance answers the token’s own instance', async () => {
    const own = await api.createConnected()
    const answer = await api.call({ path: '/v1/instance', key: own.token })
    expect(answer.status).toBe(200)
    expect(answer.body).toEqual({
      data: { id: own.id, name: 'test', state: 'connected', reason: 'Connected.', phone: '5511900000000' },
    })
  })
})
