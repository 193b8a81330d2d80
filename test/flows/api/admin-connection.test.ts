import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { API_SETTINGS, ApiHarness } from './harness.ts'

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

let api: ApiHarness

beforeAll(async () => {
  api = await ApiHarness.start()
})
afterAll(() => api[Symbol.asyncDispose]())

describe('the connection', () => {
  test('reports the state, and the QR code while linking', async () => {
    const { id } = await api.createInstance()
    const unlinked = await api.admin('GET', `/instances/${id}/connection`)
    expect(unlinked.body.data).toEqual({
      instanceId: id,
      kind: 'whatsapp',
      state: 'unlinked',
      reason: expect.any(String),
      since: expect.stringMatching(ISO),
      qr: null,
      qrExpiresAt: null,
      pairingCode: null,
      passkey: null,
      cause: 'never_linked',
      retryAt: null,
      restriction: null,
      proxy: null,
      sameNumber: [],
      phone: null,
      lastConnectedAt: null,
      simulated: false,
    })
    const expires = Date.now() + 20_000
    await api.record(id, { state: 'linking', reason: 'Scan the code.', qr: '2@abc,def', qrExpiresAt: expires })
    const linking = await api.admin('GET', `/instances/${id}/connection`)
    expect(linking.body.data).toMatchObject({
      state: 'linking',
      reason: 'Scan the code.',
      qr: '2@abc,def',
      qrExpiresAt: new Date(expires).toISOString(),
    })
    await api.record(id, {
      state: 'connected',
      reason: 'Connected.',
      qr: null,
      qrExpiresAt: null,
      phone: '5511900000000',
    })
    const connected = await api.admin('GET', `/instances/${id}/connection`)
    expect(connected.body.data).toMatchObject({
      state: 'connected',
      phone: '5511900000000',
      qr: null,
      lastConnectedAt: expect.stringMatching(ISO),
    })
  })

  test('shows the time of the next attempt, and a restriction until it ends', async () => {
    const { id } = await api.createConnected()
    const at = Date.now() + 60_000
    const restriction = { since: at - 70_000, until: at, reportedByWhatsapp: true }
    await api.record(id, { state: 'reconnecting', reason: 'Cut.', cause: 'cut', retryAt: at, restriction })
    const iso = (ms: number) => new Date(ms).toISOString()
    const { data } = (await api.admin('GET', `/instances/${id}/connection`)).body
    expect(data).toMatchObject({
      cause: 'cut',
      retryAt: iso(at),
      restriction: { since: iso(restriction.since), until: iso(at), reportedByWhatsapp: true },
    })
    await api.record(id, { restriction: { ...restriction, until: Date.now() } })
    expect((await api.admin('GET', `/instances/${id}/connection`)).body.data.restriction).toBeNull()
  })

  test('health is what the owner recorded, and 404 without an instance', async () => {
    const { id } = await api.createConnected()
    const path = `/instances/${id}/health`
    expect((await api.admin('GET', path)).body.data).toEqual({
      instanceId: id,
      state: 'connected',
      reason: 'Connected.',
      cause: expect.anything(),
      since: expect.stringMatching(ISO),
      restriction: null,
      proxy: null,
      lastFrameAt: null,
      lastAcknowledgement: null,
      undecryptable: { count: 0, lastAt: null },
      closes: [],
    })
    const at = Date.now()
    const seen = {
      lastFrameAt: at,
      acknowledgement: { at, latencyMs: 40 },
      undecryptable: 2,
      lastUndecryptableAt: at,
      closes: [
        { at: at - 1, code: 428 },
        { at, code: 428 },
      ],
    }
    await api.store.connections.recordHealth(await api.lease(id), seen, at)
    const iso = new Date(at).toISOString()
    expect((await api.admin('GET', path)).body.data).toMatchObject({
      lastFrameAt: iso,
      lastAcknowledgement: { at: iso, latencyMs: 40 },
      undecryptable: { count: 2, lastAt: iso },
      closes: [{ code: 428, count: 2, lastAt: iso }],
    })
    expect((await api.admin('GET', '/instances/inst_absent/health')).status).toBe(404)
  })

  test('says that a sandbox, or an instance on another socket, is simulated', async () => {
    const { id } = await api.createInstance('sandbox')
    expect((await api.admin('GET', `/instances/${id}/connection`)).body.data.simulated).toBe(true)
    const settings = { ...API_SETTINGS, simulated: true }
    await using elsewhere = await ApiHarness.start({ options: { settings } })
    const other = await elsewhere.createInstance()
    expect((await elsewhere.admin('GET', `/instances/${other.id}/connection`)).body.data.simulated).toBe(true)
  })

  test('every connect is 202 and reaches the owner', async () => {
    const { id } = await api.createInstance()
    const hinted: string[] = []
    const stop = api.store.hints.on('goal', changed => hinted.push(changed))
    const answer = await api.admin('POST', `/instances/${id}/connect`)
    expect([answer.status, answer.body.data.instanceId]).toEqual([202, id])
    const first = await api.store.connections.find(id)
    expect(first).toMatchObject({ goal: 'online', pairingPhone: null })
    await api.admin('POST', `/instances/${id}/connect`, { phone: '5511987654321' })
    const second = await api.store.connections.find(id)
    expect(second).toMatchObject({ goal: 'online', pairingPhone: '5511987654321', goalVersion: first!.goalVersion + 1 })
    expect(hinted.filter(changed => changed === id)).toHaveLength(2)
    stop()
  })

  test.each([
    { phone: '' },
    { phone: '+5511987654321' },
    { phone: 5511987654321 },
    { phone: '1203@g.us' },
    { phone: null },
  ])('connect with %j is an invalid request', async body => {
    const { id } = await api.createInstance()
    expect((await api.admin('POST', `/instances/${id}/connect`, body)).body.error.code).toBe('invalid_request')
    expect((await api.store.connections.find(id))?.goal).toBe('idle')
  })

  test('logout is 202 and reaches the owner', async () => {
    const { id } = await api.createConnected()
    const answer = await api.admin('POST', `/instances/${id}/logout`)
    expect([answer.status, answer.body.data.instanceId]).toEqual([202, id])
    expect((await api.store.connections.find(id))?.goal).toBe('logged_out')
  })

  test('a connect after a logout that is not carried out yet is 202, and the owner gets both', async () => {
    const { id } = await api.createConnected()
    await api.admin('POST', `/instances/${id}/logout`)
    expect((await api.admin('POST', `/instances/${id}/connect`)).status).toBe(202)
    expect((await api.store.connections.find(id))?.goal).toBe('relinked')
  })

  test('a deletion without an open connection is logged, because the number is not unlinked', async () => {
    const linesOf = (id: string) =>
      api.logged.filter(line => line['msg'] === 'instance.deleted_unconnected' && line['instanceId'] === id)
    const [connected, away, unlinked] = [
      await api.createConnected(),
      await api.createConnected(),
      await api.createInstance(),
    ]
    await api.record(away.id, { state: 'stopped', reason: 'Replaced.', cause: 'replaced' })
    for (const { id } of [connected, away, unlinked])
      expect((await api.admin('DELETE', `/instances/${id}`)).status).toBe(204)
    expect(linesOf(away.id)).toMatchObject([{ state: 'stopped', action: expect.stringContaining('Linked devices') }])
    expect([...linesOf(connected.id), ...linesOf(unlinked.id)]).toEqual([])
  })
})
