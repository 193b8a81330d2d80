import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ONE_STORE } from '../../../databases/one-store.ts'
import { ApiHarness } from '../harness.ts'

interface Record {
  seq: number
  digest: string
  by: string
  byName: string | null
  action: string
  instanceId: string | null
  address: string
  details: object
}

const LOOPBACK = '127.0.0.1'

describe.each(ONE_STORE)('the audit on %s', on => {
  let api: ApiHarness

  beforeAll(async () => {
    api = await ApiHarness.start({ on })
  })
  afterAll(() => api[Symbol.asyncDispose]())

  const list = async (query = '') => (await api.admin('GET', `/audit?limit=200${query}`)).body.data as Record[]
  const signIn = (key: string) => api.call({ method: 'POST', path: '/admin/v1/session', body: { key } })

  test('records every call that changes something, with the names in it and without its texts and secrets', async () => {
    const { id, token } = await api.createConnected('sandbox')
    const to = '5511987654321'
    const created = await api.admin('POST', `/instances/${id}/keys`, { name: 'CRM', scopes: ['send', 'read'] })
    const { id: keyId, key } = created.body.data
    const url = 'https://example.com/hook?confidential=1'
    await api.admin('PATCH', `/instances/${id}`, { name: 'Renamed' })
    await api.admin('PUT', `/instances/${id}/webhook`, { url })
    await api.admin('POST', `/instances/${id}/webhook/test`)
    await api.admin('POST', `/instances/${id}/messages`, { to, text: 'confidential' })
    await api.admin('POST', `/instances/${id}/sandbox/incoming`, { from: to, text: 'confidential' })
    await api.admin('DELETE', `/instances/${id}/keys/${keyId}`)
    await api.admin('DELETE', `/instances/${id}/keys/${keyId}`)
    await api.admin('POST', `/instances/${id}/token`)
    await api.admin('DELETE', `/instances/${id}`)
    await api.admin('DELETE', `/instances/${id}`)
    await api.admin('GET', '/instances')

    const records = (await list(`&instanceId=${id}`)).toReversed()
    expect(records.map(({ action, details }) => [action, details])).toEqual([
      ['createInstance', { name: 'test', kind: 'sandbox' }],
      ['createKey', { keyId, name: 'CRM', scopes: 'send read', expiresAt: null }],
      ['renameInstance', { name: 'Renamed' }],
      ['setInstanceWebhook', {}],
      ['testWebhook', {}],
      ['sendMessage', {}],
      ['writeAsContact', {}],
      ['revokeKey', { keyId }],
      ['replaceToken', {}],
      ['deleteInstance', {}],
    ])
    expect(new Set(records.map(({ by, address }) => `${by} ${address}`))).toEqual(new Set([`admin_key ${LOOPBACK}`]))
    const everything = JSON.stringify(await list())
    for (const secret of ['confidential', token, key, to]) expect(everything).not.toContain(secret)
  })

  test('names the session of the panel', async () => {
    const signedIn = await signIn('admin-key-of-these-tests-0123456789')
    const cookie = signedIn.headers.get('set-cookie')!.split(';')[0]!
    const session = signedIn.body.data.id.slice(0, 8)
    const headers = { cookie, origin: api.url }
    await api.call({ method: 'POST', path: '/admin/v1/instances', headers, body: { name: 'By session' } })
    await api.call({ method: 'DELETE', path: '/admin/v1/session', headers })
    const records = (await list('&by=panel')).toReversed()
    expect(records.map(({ action, details }) => [action, details])).toEqual([
      ['signIn', { session, method: 'admin_key' }],
      ['createInstance', { session, name: 'By session', kind: 'whatsapp' }],
      ['signOut', { session }],
    ])
    const line = api.logged.find(({ msg, action }) => msg === 'audit' && action === 'signIn')
    const { seq, digest } = records[0]!
    expect(line).toMatchObject({ auditSeq: seq, auditDigest: digest.slice(0, 32) })
  })

  test('records who changes the destination of events with a token or a key, and no other call of a program', async () => {
    const { id, token } = await api.createConnected()
    const created = await api.admin('POST', `/instances/${id}/keys`, { name: 'CRM', scopes: ['webhooks', 'events'] })
    const { id: keyId, key } = created.body.data
    const call = (method: string, path: string, by: string, body?: object) =>
      api.call({ method, path, key: by, ...(body && { body }) })
    const webhook = `/v1/webhooks/${id}`
    const url = 'https://example.com/hook?confidential=1'
    await call('PUT', webhook, token, { url })
    const endpoint = await call('POST', `${webhook}/endpoints`, key, { url })
    const endpointId = endpoint.body.data.id
    await call('PATCH', `${webhook}/endpoints/${endpointId}`, token, { active: false })
    await call('POST', `${webhook}/endpoints/${endpointId}/secret`, key)
    await call('POST', `${webhook}/endpoints/${endpointId}/test`, key)
    await call('POST', `${webhook}/endpoints/${endpointId}/retry`, key)
    await call('DELETE', `${webhook}/endpoints/${endpointId}`, key)
    await call('DELETE', `${webhook}/endpoints/${endpointId}`, key)
    await call('DELETE', webhook, token)
    await api.send({ id, token }, { to: '5511987654321', text: 'confidential' })
    await call('PUT', webhook, token, { url: 'not a URL' })

    const records = (await list(`&instanceId=${id}`)).toReversed().slice(2)
    expect(records.map(({ action, by, byName, details }) => [action, by, byName, details])).toEqual([
      ['setWebhook', 'token', null, {}],
      ['createEndpoint', keyId, 'CRM', { endpointId }],
      ['changeEndpoint', 'token', null, { endpointId }],
      ['replaceEndpointSecret', keyId, 'CRM', { endpointId }],
      ['deleteEndpoint', keyId, 'CRM', { endpointId }],
      ['clearWebhook', 'token', null, {}],
    ])
    expect(await list(`&by=${keyId}`)).toHaveLength(3)
    expect(JSON.stringify(records)).not.toContain('confidential')
    const lines = api.logged.filter(({ msg, instanceId }) => msg === 'audit' && instanceId === id)
    const loggedBy = lines.filter(({ action }) => String(action).endsWith('Endpoint')).map(({ by }) => by)
    expect(loggedBy).toEqual([`key ${keyId}`, 'token', `key ${keyId}`, `key ${keyId}`])
  })

  test('lists what an account was granted', async () => {
    const [first, second] = [(await api.createInstance()).id, (await api.createInstance()).id]
    const instances = [first, second]
    const created = await api.admin('POST', '/accounts', { name: `Ana on ${on}`, role: 'operator', instances })
    const { id, name } = created.body.data.account
    await api.admin('PUT', `/accounts/${id}/access`, { role: 'viewer', instances: [second] })
    await api.admin('PUT', `/accounts/${id}/access`, { role: 'viewer' })
    await api.admin('PUT', `/accounts/${id}/access`, { role: 'viewer', instances: [] })
    const records = (await list('&by=admin_key')).filter(({ details }) => 'id' in details && details.id === id)
    expect(records.toReversed().map(({ action, details }) => [action, details])).toEqual([
      ['createAccount', { id, name, role: 'operator', instances: `${first} ${second}` }],
      ['changeAccount', { id, role: 'viewer', instances: second }],
      ['changeAccount', { id, role: 'viewer', instances: 'all' }],
      ['changeAccount', { id, role: 'viewer', instances: '' }],
    ])
  })

  test('records failed sign-ins, but not every one of a guesser', async () => {
    for (let count = 0; count < 15; count += 1) expect((await signIn(`guess ${count}`)).status).toBeGreaterThan(400)
    const failed = (await list('&action=signIn')).filter(({ by }) => by === 'nobody')
    expect(failed.map(({ address, details }) => [address, details])).toEqual([
      [LOOPBACK, { succeeded: false, notRecordedBefore: 0 }],
    ])
    expect(JSON.stringify(failed)).not.toContain('guess')
  })

  test('does not record calls that change nothing, because a caller could make any number of them', async () => {
    const before = (await list()).length
    const signedIn = await signIn('admin-key-of-these-tests-0123456789')
    const headers = { cookie: signedIn.headers.get('set-cookie')!.split(';')[0]!, origin: api.url }
    for (const path of ['/admin/v1/sessions/ses_nowhere', '/admin/v1/sessions']) {
      for (let n = 0; n < 3; n += 1) expect((await api.call({ method: 'DELETE', path, headers })).status).toBe(204)
    }
    const added = (await list()).slice(0, -before).map(({ action }) => action)
    expect(added.filter(action => action === 'endSession')).toEqual([])
    expect(added.filter(action => action === 'endOtherSessions').length).toBeLessThanOrEqual(1)
  })

  test('can be checked, and no call changes it', async () => {
    const before = (await api.admin('GET', '/audit/check')).body.data
    expect(before).toEqual({ entries: (await list())[0]!.seq, digest: expect.any(String), brokenAt: null })
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      expect((await api.admin(method, '/audit', {})).status).toBe(405)
      expect((await api.admin(method, '/audit/1', {})).status).toBe(404)
    }
    expect((await api.admin('GET', '/audit/check')).body.data).toEqual(before)
  })

  test.each(['by=', 'since=yesterday', 'until=1', 'instanceId=%00', 'who=me', 'cursor=x'])(
    '?%s is invalid',
    async query => {
      const answer = await api.admin('GET', `/audit?${query}`)
      expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_request'])
    },
  )
})
