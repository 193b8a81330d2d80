import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { PasskeyAssertion, PasskeyRequest } from '../../../../src/domain/connection/passkey.ts'
import { noteBody, noteSecret } from '../../../logs/log-capture.ts'
import { type Network, startNetwork } from '../../../network.ts'
import { TestPasskey } from '../../../passkey.ts'
import { type Service, startService } from '../../../service.ts'
import { until } from '../../../until.ts'

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

async function post(path: string, body: object | undefined, headers: Record<string, string>) {
  noteBody(body)
  const response = await fetch(service.url + path, {
    method: 'POST',
    headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  })
  // biome-ignore lint/suspicious/noExplicitAny: tests compare parts of it
  const answer: any = await response.json()
  return { status: response.status, headers: response.headers, data: answer.data, code: answer.error?.code }
}

const byAdmin = (path: string, body?: object) =>
  post(`/admin/v1${path}`, body, { authorization: `Bearer ${service.adminKey}` })

/** A browser that has opened the linking page of an instance. */
async function openLink(id: string) {
  const { data } = await byAdmin(`/instances/${id}/links`, { expiresInMinutes: 5 })
  const token = data.url.split('#')[1]
  noteSecret(token)
  const open = async () => {
    const first = await post('/link/read', { token }, {})
    const [cookie = ''] = (first.headers.get('set-cookie') ?? '').split(';')
    noteSecret(cookie.split('=')[1])
    return (path: string, body: object = {}) => post(`/link${path}`, { token, ...body }, { cookie })
  }
  return { call: await open(), open }
}

let numbers = 5511912340100
/** A phone scans the instance's code, and WhatsApp asks for its passkey. @returns WhatsApp's request */
async function scan(id: string, passkey: TestPasskey): Promise<PasskeyRequest> {
  const { phone } = await network.openAccount(String(numbers++))
  await network.misbehave({ kind: 'require_passkey', account: phone, credential: passkey.credential })
  const qr = await until('a code', async () => (await service.admin.connection(id)).qr)
  // Resolves when the number is linked.
  network.scanQr(qr, phone).catch(() => undefined)
  return asked(id)
}

const asked = (id: string, not?: PasskeyRequest): Promise<PasskeyRequest> =>
  until('the request', async () => {
    const request = (await service.admin.connection(id)).passkey?.request
    return request && request.challenge !== not?.challenge && request
  })

test('a number is linked with its passkey by the API', async () => {
  const { id } = await service.admin.createInstance('whatsapp', 'Shop')
  const passkey = new TestPasskey()
  await service.admin.connect(id)
  const assertion = passkey.answer(await scan(id, passkey))
  expect(await byAdmin(`/instances/${id}/connection/passkey`, { assertion })).toMatchObject({ status: 202 })
  await service.admin.untilState(id, 'connected')
  const late = await byAdmin(`/instances/${id}/connection/passkey`, { assertion })
  expect(late).toMatchObject({ status: 409, code: 'passkey_not_requested' })
})

test('an answer for another instance is refused and does not affect that instance, and concurrent copies of an answer count once', async () => {
  const [{ id: mine }, { id: other }] = [
    await service.admin.createInstance('whatsapp', 'Mine'),
    await service.admin.createInstance('whatsapp', 'Other'),
  ]
  const [myPasskey, otherPasskey] = [new TestPasskey(), new TestPasskey()]
  for (const id of [mine, other]) await service.admin.connect(id)
  const first = await scan(mine, myPasskey)
  const others = await scan(other, otherPasskey)
  const answer = (assertion: PasskeyAssertion) => byAdmin(`/instances/${mine}/connection/passkey`, { assertion })

  expect(await answer(otherPasskey.answer(others))).toMatchObject({ status: 202 })
  const second = await asked(mine, first)
  expect(await service.admin.connection(mine)).toMatchObject({ state: 'linking', cause: 'passkey_refused' })
  expect((await service.admin.connection(other)).passkey?.request).toEqual(others)

  const assertion = myPasskey.answer(second)
  const sent = await Promise.all(Array.from({ length: 20 }, () => answer(assertion)))
  for (const { status, code } of sent)
    expect([
      [202, undefined],
      [409, 'passkey_not_requested'],
    ]).toContainEqual([status, code])
  await until('a code to compare', async () => (await service.admin.connection(mine)).passkey?.code)
  const confirm = () => byAdmin(`/instances/${mine}/connection/passkey/confirm`)
  const confirmed = await Promise.all(Array.from({ length: 20 }, confirm))
  for (const { status, code } of confirmed)
    expect([
      [202, undefined],
      [409, 'passkey_not_requested'],
    ]).toContainEqual([status, code])
  await service.admin.untilState(mine, 'connected')
  expect(
    (await byAdmin(`/instances/${other}/connection/passkey`, { assertion: otherPasskey.answer(others) })).status,
  ).toBe(202)
  await service.admin.untilState(other, 'connected')
  const database = new Sqlite(join(service.dataDir, 'pombal.db'), { readonly: true })
  const left = database.prepare('select count(*) as n from passkey_answers').get()
  database.close()
  expect(left).toEqual({ n: 0 })
})

test('a linking link shows the steps to the browser that has opened it, and passes its answers on', async () => {
  const { id } = await service.admin.createInstance('whatsapp', 'Shop')
  const passkey = new TestPasskey()
  const { call, open } = await openLink(id)
  const unused = { assertion: passkey.answer({ challenge: 'AAAA', rpId: 'whatsapp.com' }) }
  expect(await call('/passkey', unused)).toMatchObject({ status: 409, code: 'passkey_not_requested' })
  expect((await call('/start')).status).toBe(202)
  const first = await scan(id, passkey)
  expect((await call('/read')).data.passkey).toMatchObject({ stage: 'assertion', request: first, code: null })

  const elsewhere = await open()
  expect(await elsewhere('/read')).toMatchObject({ status: 409, code: 'link_in_use' })
  expect(await elsewhere('/passkey', unused)).toMatchObject({ status: 409, code: 'link_in_use' })
  expect(await elsewhere('/passkey/confirm')).toMatchObject({ status: 409, code: 'link_in_use' })
  expect(await call('/passkey', { assertion: {} })).toMatchObject({ status: 400, code: 'invalid_request' })
  expect(await call('/passkey/confirm')).toMatchObject({ status: 409, code: 'passkey_not_requested' })

  await call('/passkey', { assertion: passkey.answer(first, { origin: 'https://web.whatsapp.example' }) })
  const second = await asked(id, first)
  expect((await call('/read')).data).toMatchObject({ cause: 'passkey_refused', passkey: { request: second } })
  expect(await call('/passkey', { assertion: passkey.answer(second) })).toMatchObject({ status: 202 })
  const code = await until('a code to compare', async () => (await call('/read')).data.passkey?.code)
  expect(code).toMatch(/^[1-9A-HJ-NP-TV-Z]{8}$/)
  expect((await call('/passkey/confirm')).status).toBe(202)
  await until('the number to be linked', async () => (await call('/read')).data.linked)
  expect(await call('/passkey/confirm')).toMatchObject({ status: 409, code: 'already_linked' })

  const audit = await fetch(`${service.url}/admin/v1/audit?instanceId=${id}`, {
    headers: { authorization: `Bearer ${service.adminKey}` },
  })
  const { data } = (await audit.json()) as { data: { action: string; by: string }[] }
  const byLink = data.filter(({ by }) => by !== 'admin_key').map(({ action }) => action)
  expect(byLink).toEqual(expect.arrayContaining(['startLink', 'answerPasskeyByLink', 'confirmPasskeyByLink']))
})

test('a link that was revoked or never existed passes nothing on', async () => {
  const { id } = await service.admin.createInstance('whatsapp', 'Shop')
  const passkey = new TestPasskey()
  const { call } = await openLink(id)
  await call('/start')
  const assertion = passkey.answer(await scan(id, passkey))
  const headers = { authorization: `Bearer ${service.adminKey}` }
  const links = await fetch(`${service.url}/admin/v1/instances/${id}/links`, { headers })
  const [link] = ((await links.json()) as { data: { id: string }[] }).data
  await fetch(`${service.url}/admin/v1/instances/${id}/links/${link!.id}`, { method: 'DELETE', headers })
  expect(await call('/passkey', { assertion })).toMatchObject({ status: 404, code: 'link_not_found' })
  await service.admin.untilState(id, 'unlinked')
  const unknown = await post(
    '/link/passkey',
    { token: 'x'.repeat(43), assertion },
    { cookie: `pombal_link=${'x'.repeat(43)}` },
  )
  expect(unknown).toMatchObject({ status: 404, code: 'link_not_found' })
})
