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
  // More than other calls may have.
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

test('files that are no session, and other bodies, are refused with a sentence and change nothing', async () => {
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
