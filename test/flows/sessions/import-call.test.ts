import { afterAll, beforeAll, expect, test } from 'vitest'
import { linkedSession, sessionFiles } from '../../sessions/linked-session.ts'
import { ApiHarness } from '../api/harness.ts'

const PHONE = '5511900000042'

let api: ApiHarness

beforeAll(async () => {
  api = await ApiHarness.start()
})
afterAll(() => api[Symbol.asyncDispose]())

function importFiles(files: ReadonlyMap<string, string>, more: object = {}) {
  return api.admin('POST', '/instances/import', { name: 'Shop', files: Object.fromEntries(files), ...more })
}

test('the files of a session become a stopped instance with a token; the number is not imported twice', async () => {
  const session = linkedSession(PHONE)
  // More bytes than the body of another call may have.
  session.keys['session']!['5511900000009.0'] = {
    _sessions: { one: { padding: 'x'.repeat(3_000_000) } },
    version: 'v1',
  }
  const files = sessionFiles(session)
  files.set('notes.txt', 'of somebody')
  files.set('session-5511900000002.0.json', '{"_sess')
  const { status, body } = await importFiles(files)
  expect({ status, body }).toMatchObject({
    status: 201,
    body: { data: { name: 'Shop', kind: 'whatsapp', state: 'stopped', phone: PHONE, keys: 14, unreadable: 1 } },
  })
  const { id, token } = body.data
  expect((await api.call({ path: '/v1/messages', key: token })).status).toBe(200)
  expect((await api.admin('GET', `/instances/${id}/connection`)).body.data).toMatchObject({ cause: 'imported' })
  const again = await importFiles(files)
  expect([again.status, again.body.error.code]).toEqual([409, 'number_linked_here'])
  expect(again.body.error.message).toContain(id)
  const { body: audit } = await api.admin('GET', '/audit?action=importSession')
  expect(audit.data).toMatchObject([{ by: 'admin_key', instanceId: id, details: { name: 'Shop' } }])
})

test('keys with names or values that no program writes are left out, and nothing fails', async () => {
  const files = sessionFiles(linkedSession('5511900000043'))
  const { size } = files
  for (const id of [
    'a\0',
    'a\uFFFD',
    '\uD800',
    '\uD801',
    'a\nb',
    'x'.repeat(5_000),
    '../../x',
    '__proto__',
    'constructor',
  ])
    files.set(`lid-mapping-${id}.json`, '"1"')
  files.set('session-1.0.json', `{"_sessions":${'['.repeat(100_000)}${']'.repeat(100_000)}}`)
  files.set('session-2.0.json', '{"_sessions":{"__proto__":{"constructor":1}},"__proto__":{"isAdmin":true}}')
  for (const name of ['__proto__.json', 'constructor.json', '../creds.json', '.json']) files.set(name, '{"a":1}')
  const { status, body } = await importFiles(files, { name: 'Odd' })
  expect({ status, body }).toMatchObject({ status: 201, body: { data: { name: 'Odd', unreadable: 1 } } })
  // Those with visible ASCII in their names are harmless.
  expect(body.data.keys).toBe(size - 1 + 4)
  const { status: read } = await api.admin('GET', `/instances/${body.data.id}/connection`)
  expect(read).toBe(200)
})

test('an invalid number, an invalid device and too many keys are refused', async () => {
  for (const me of [`${'9'.repeat(400)}:7`, '5511:7', 'x:7', '5511900000044', '5511900000044:9e9', '5511900000044:x']) {
    const session = linkedSession()
    session.creds.me = { id: `${me}@s.whatsapp.net` }
    const { status, body } = await importFiles(sessionFiles(session))
    expect([status, body.error.code], me).toEqual([400, 'invalid_session'])
  }
  const files = sessionFiles(linkedSession())
  for (let user = 0; user <= 20_000; user += 1) files.set(`lid-mapping-${user}.json`, '"1"')
  const { status, body } = await importFiles(files)
  expect([status, body.error.code]).toEqual([400, 'invalid_session'])
  expect(body.error.message).toContain('import-sessions')
})

test('files that are not a session, and other bodies, are refused with a clear error message and change nothing', async () => {
  const before = (await api.admin('GET', '/instances')).body.data.length
  const torn = sessionFiles(linkedSession())
  torn.set('creds.json', torn.get('creds.json')!.slice(0, 300))
  const forged = linkedSession()
  forged.creds.account!.accountSignature = Buffer.alloc(64, 1)
  for (const files of [torn, sessionFiles(forged), new Map(), new Map([['__proto__', '{}']])]) {
    const { status, body } = await importFiles(files)
    expect([status, body.error.code]).toEqual([400, 'invalid_session'])
    expect(body.error.message).toMatch(/^[A-Z].*\.$/)
  }
  for (const more of [{ name: '' }, { files: { 'creds.json': 1 } }, { files: [] }, { files: null }]) {
    const { status, body } = await importFiles(torn, more)
    expect([status, body.error.code], JSON.stringify(more)).toEqual([400, 'invalid_request'])
  }
  expect((await api.admin('GET', '/instances')).body.data).toHaveLength(before)
})
