import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { noteSecret } from '../../../logs/log-capture.ts'
import { type Network, startNetwork } from '../../../network.ts'
import { TestPasskey } from '../../../passkey.ts'
import { type Service, startService } from '../../../service.ts'
import { until } from '../../../until.ts'

/** Somebody who has got hold of links, or tries to. Each test uses only what such a person can send. */

let network: Network
let service: Service
beforeAll(async () => {
  network = await startNetwork()
  service = await startService({ env: { WHATSAPP_URL: network.url, WHATSAPP_PASSKEY: 'on' } })
})
afterAll(async () => {
  await service?.dispose()
  await network?.close()
})

async function post(path: string, body: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(service.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  const text = await response.text()
  // biome-ignore lint/suspicious/noExplicitAny: tests compare parts of it
  const parsed: any = text.startsWith('{') ? JSON.parse(text) : {}
  const [cookie = ''] = (response.headers.get('set-cookie') ?? '').split(';')
  if (cookie !== '') noteSecret(cookie.split('=')[1])
  return { status: response.status, text, data: parsed.data, code: parsed.error?.code as string | undefined, cookie }
}

async function handOut(id: string): Promise<{ id: string; token: string }> {
  const headers = { authorization: `Bearer ${service.adminKey}` }
  const { data } = await post(`/admin/v1/instances/${id}/links`, { expiresInMinutes: 5 }, headers)
  const token = data.url.split('#')[1]
  noteSecret(token)
  return { id: data.id, token }
}

const createInstance = async (name: string) => (await service.admin.createInstance('whatsapp', name)).id
const PATHS = ['/link/read', '/link/start', '/link/passkey', '/link/passkey/confirm']
const ASSERTION = new TestPasskey().answer({ challenge: 'AAAA', rpId: 'whatsapp.com' })

test('a link shows and starts nothing of another instance, whichever cookies and fields come with it', async () => {
  const [own, foreign] = [await createInstance('Own'), await createInstance('Foreign')]
  const [mine, theirs] = [await handOut(own), await handOut(foreign)]
  const [me, victim] = [
    await post('/link/read', { token: mine.token }),
    await post('/link/read', { token: theirs.token }),
  ]
  expect((await post('/link/start', { token: theirs.token }, { cookie: victim.cookie })).status).toBe(202)
  const qr = await until('the code of the victim', async () => (await service.admin.connection(foreign)).qr)

  const named = { token: mine.token, instanceId: foreign, id: theirs.id, linkId: theirs.id }
  for (const cookie of [me.cookie, victim.cookie, `${me.cookie}; ${victim.cookie}`]) {
    const read = await post('/link/read', named, { cookie })
    expect(read.text).not.toContain(qr)
    expect(read.data?.qr ?? null).toBeNull()
  }
  // The victim's token alone is worth nothing in another browser.
  for (const cookie of [me.cookie, '', 'pombal_link=', `pombal_link=${'A'.repeat(43)}`]) {
    for (const path of PATHS) {
      const body = { token: theirs.token, ...(path === '/link/passkey' && { assertion: ASSERTION }) }
      const refused = await post(path, body, { cookie })
      expect({ path, status: refused.status, code: refused.code }).toEqual({ path, status: 409, code: 'link_in_use' })
      expect(refused.text).not.toContain(qr)
    }
  }
  expect((await service.admin.connection(own)).state).toBe('unlinked')
  expect(await post('/link/passkey/confirm', { token: mine.token }, { cookie: me.cookie })).toMatchObject({
    status: 409,
    code: 'passkey_not_requested',
  })
})

test('of many browsers that open one link at the same moment, one gets it', async () => {
  const id = await createInstance('Race')
  const { token } = await handOut(id)
  const browsers = await Promise.all(Array.from({ length: 12 }, () => post('/link/read', { token })))
  const started = await Promise.all(browsers.map(({ cookie }) => post('/link/start', { token }, { cookie })))
  expect(started.map(({ status }) => status).sort()).toEqual([202, ...Array(11).fill(409)])
  const shown = await Promise.all(browsers.map(({ cookie }) => post('/link/read', { token }, { cookie })))
  expect(shown.filter(({ status }) => status === 200)).toHaveLength(1)
})

test('a link that has expired, was used or revoked, or whose instance is gone reveals only that it no longer works', async () => {
  const use = async (spend: (id: string, link: { id: string; token: string }) => Promise<unknown>) => {
    const id = await createInstance('Spent')
    const link = await handOut(id)
    const { cookie } = await post('/link/read', { token: link.token })
    await post('/link/start', { token: link.token }, { cookie })
    await until('a code', async () => (await post('/link/read', { token: link.token }, { cookie })).data.qr)
    await spend(id, link)
    return { id, link, cookie }
  }
  const expired = await use(async (_, link) => {
    const database = new Sqlite(join(service.dataDir, 'pombal.db'))
    database.prepare('update handouts set expires_at = ? where id = ?').run(Date.now() - 1, link.id)
    database.close()
  })
  const headers = { authorization: `Bearer ${service.adminKey}` }
  const revoked = await use((id, link) =>
    fetch(`${service.url}/admin/v1/instances/${id}/links/${link.id}`, { method: 'DELETE', headers }),
  )
  const deleted = await use(id => service.admin.deleteInstance(id))
  for (const { link, cookie } of [expired, revoked, deleted])
    for (const path of PATHS) {
      const body = { token: link.token, ...(path === '/link/passkey' && { assertion: ASSERTION }) }
      const refused = await post(path, body, { cookie })
      // A caller with many links that are gone is limited like one that guesses.
      const codes = link === expired.link ? ['link_not_found'] : ['link_not_found', 'too_many_attempts']
      expect(codes).toContain(refused.code)
    }
  for (const { id } of [expired, revoked])
    await until('its code to end', async () => (await service.admin.connection(id)).state === 'unlinked')

  const used = await use(async id => {
    const { qr } = await service.admin.connection(id)
    await network.scanQr(qr!)
    await service.admin.untilState(id, 'connected')
  })
  const { phone } = await service.admin.connection(used.id)
  // A used link neither unlinks nor replaces the number, not even after the phone has removed the device.
  for (const path of PATHS.slice(1)) {
    const body = { token: used.link.token, ...(path === '/link/passkey' && { assertion: ASSERTION }) }
    const again = await post(path, body, { cookie: used.cookie })
    expect(again).toMatchObject({ status: 409, code: 'already_linked' })
  }
  expect(await service.admin.connection(used.id)).toMatchObject({ state: 'connected', phone })
  await network.misbehave({ kind: 'stream_error', account: phone!, conflict: 'device_removed' })
  await service.admin.untilState(used.id, 'logged_out')
  expect((await post('/link/start', { token: used.link.token }, { cookie: used.cookie })).status).toBe(409)
  expect((await service.admin.connection(used.id)).state).toBe('logged_out')
})

test('calls that the page never makes cause no 5xx; a refusal has a code, and no answer repeats what was sent', async () => {
  const { token } = await handOut(await createInstance('Odd'))
  const { cookie } = await post('/link/read', { token })
  const marker = '<script>alert("marker")</script>'
  const bodies: unknown[] = [
    '',
    '{',
    'null',
    '[]',
    '"x"',
    {},
    { token: null },
    { token: [token] },
    { token: { toString: token } },
    { token: token.slice(1) },
    { token: `${token} ` },
    { token: '\0'.repeat(43) },
    { token: '\uD800'.repeat(43) },
    { token: "' or '1'='1' -- ".padEnd(43, 'x') },
    { token: marker.padEnd(43, 'x') },
    { token, phone: marker },
    { token, phone: ['5511912340001'] },
    { token, phone: '5511912340001'.repeat(300) },
    { token, assertion: marker },
    { token, assertion: { ...ASSERTION, id: marker } },
    { token, assertion: { ...ASSERTION, response: { ...ASSERTION.response, signature: 'A'.repeat(20_000) } } },
    { token, assertion: { ...ASSERTION, response: [] } },
    `{"token":${'['.repeat(2_000)}`,
    `{"token":"${token}","__proto__":{"phone":"5511912340001"}}`,
  ]
  for (const path of PATHS)
    for (const body of bodies) {
      const { status, text, code } = await post(path, body, { cookie })
      const what = `${path} ${JSON.stringify(body).slice(0, 80)}`
      expect([200, 202, 400, 404, 409, 413, 429], what).toContain(status)
      if (status >= 300) expect(code, what).toMatch(/^[a-z_]+$/)
      expect(text, what).not.toContain('<script>')
    }
  // A form of another site cannot send JSON, and no other method changes anything.
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'])
    expect((await post('/link/start', JSON.stringify({ token }), { cookie, 'content-type': type })).status).toBe(415)
  for (const method of ['GET', 'PUT', 'DELETE', 'PATCH'])
    expect((await fetch(`${service.url}/link/start`, { method, headers: { cookie } })).status).toBeGreaterThanOrEqual(
      400,
    )
})

test('guessing is limited, and a valid link still works, even from the same address', async () => {
  const { token } = await handOut(await createInstance('Guessed'))
  const guess = () => Array.from({ length: 43 }, () => 'abcXYZ019-_'[Math.floor(Math.random() * 11)]).join('')
  const limited = await until('a limit', async () => {
    const answer = await post('/link/read', { token: guess() })
    return answer.status === 429 && answer
  })
  expect(limited.code).toBe('too_many_attempts')
  const near = token.slice(0, -1) + (token.endsWith('A') ? 'B' : 'A')
  expect((await post('/link/read', { token: near })).data).toBeUndefined()
  expect((await post('/link/read', { token })).status).toBe(200)
})
