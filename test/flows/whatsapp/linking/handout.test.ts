import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Handouts } from '../../../../src/store/handouts/handouts.ts'
import { noteSecret } from '../../../logs/log-capture.ts'
import { type Network, startNetwork } from '../../../network.ts'
import { type Service, startService } from '../../../service.ts'
import { until } from '../../../until.ts'
import { ApiHarness } from '../../api/harness.ts'
import { createPerson } from '../../api/people/people.ts'

let network: Network
let service: Service
beforeAll(async () => {
  network = await startNetwork()
  service = await startService({ env: { WHATSAPP_URL: network.url } })
})
afterAll(async () => {
  await service?.dispose()
  await network?.close()
})

interface Answer {
  status: number
  headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: tests compare parts of it
  data: any
  code: string | undefined
}

async function call(
  method: string,
  path: string,
  body?: object,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const response = await fetch(service.url + path, {
    method,
    headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  })
  // biome-ignore lint/suspicious/noExplicitAny: tests compare parts of it
  const answer: any = response.status === 204 ? {} : await response.json()
  return { status: response.status, headers: response.headers, data: answer.data, code: answer.error?.code }
}

const byAdmin = (method: string, path: string, body?: object) =>
  call(method, `/admin/v1${path}`, body, { authorization: `Bearer ${service.adminKey}` })

async function handOut(id: string, options: object = {}): Promise<{ id: string; token: string }> {
  const { status, data } = await byAdmin('POST', `/instances/${id}/links`, { expiresInMinutes: 5, ...options })
  expect(status).toBe(201)
  const [path, token] = data.url.split('#')
  noteSecret(token)
  expect(path).toMatch(/\/link$/)
  return { id: data.id, token }
}

/** A browser that has opened the linking page. */
async function openPage(token: string) {
  const first = await call('POST', '/link/read', { token })
  const [cookie = ''] = (first.headers.get('set-cookie') ?? '').split(';')
  noteSecret(cookie.split('=')[1])
  return {
    first,
    read: () => call('POST', '/link/read', { token }, { cookie }),
    start: (body: object = {}) => call('POST', '/link/start', { token, ...body }, { cookie }),
  }
}

const createInstance = async () => (await service.admin.createInstance('whatsapp', 'Shop')).id

describe('a linking link', () => {
  test('links the number without a key, survives a kill -9 after each step, and then ends', async () => {
    const id = await createInstance()
    const returnUrl = 'https://shop.example.com/done'
    const link = await handOut(id, { title: 'Loja da Ana', returnUrl })
    const page = await openPage(link.token)
    expect(page.first.data).toEqual({
      title: 'Loja da Ana',
      returnUrl,
      expiresAt: expect.any(String),
      opened: false,
      linked: false,
      pairingCodesLeft: 3,
      ...{ state: null, cause: null, since: null, qr: null, qrExpiresAt: null, pairingCode: null, passkey: null },
    })
    expect((await service.admin.connection(id)).state).toBe('unlinked')
    await service.restart('SIGKILL')
    expect(await page.start()).toMatchObject({ status: 202, data: { opened: true } })
    await service.restart('SIGKILL')
    await until('the link to request a code, again if the kill ended the first', async () => {
      const { data } = await page.read()
      if (data.qr === null && data.state === 'unlinked') await page.start()
      return data.qr
    })
    const elsewhere = await openPage(link.token)
    expect(elsewhere.first).toMatchObject({ status: 409, code: 'link_in_use' })
    expect(await elsewhere.start()).toMatchObject({ status: 409, code: 'link_in_use' })
    const { phone } = await until('a scan of a code that is still shown', async () => {
      const { qr } = (await page.read()).data
      return qr && network.scanQr(qr).catch(() => null)
    })
    await service.admin.untilState(id, 'connected')
    await service.restart('SIGKILL')
    expect((await page.read()).data).toMatchObject({ linked: true, returnUrl, qr: null, state: null })
    expect(await page.start()).toMatchObject({ status: 409, code: 'already_linked' })
    expect((await openPage(link.token)).first).toMatchObject({ status: 404, code: 'link_not_found' })
    await service.admin.untilState(id, 'connected')
    expect((await service.admin.connection(id)).phone).toBe(phone)
    expect(await byAdmin('POST', `/instances/${id}/links`, { expiresInMinutes: 5 })).toMatchObject({
      status: 409,
      code: 'already_linked',
    })
    const records = await byAdmin('GET', `/audit?instanceId=${id}`)
    expect(records.data.map(({ action, by }: { action: string; by: string }) => [action, by])).toEqual(
      expect.arrayContaining([
        ['createLink', 'admin_key'],
        ['startLink', link.id],
      ]),
    )
    expect(JSON.stringify(records.data)).not.toContain(link.token)
  })

  test('repeated requests while a QR code is shown leave it alone, and the audit has only the first', async () => {
    const id = await createInstance()
    const { id: linkId, token } = await handOut(id)
    const page = await openPage(token)
    await page.start()
    const qr = await until('a QR code', async () => (await page.read()).data.qr)
    for (let count = 0; count < 5; count += 1)
      expect(await page.start()).toMatchObject({ status: 202, data: { state: 'linking', qr: expect.any(String) } })
    const records = (await byAdmin('GET', `/audit?instanceId=${id}&action=startLink`)).data
    expect(records.map(({ by }: { by: string }) => by)).toEqual([linkId])
    await network.scanQr(qr)
    await until('the number to be linked', async () => (await page.read()).data.linked)
  })

  test('links by pairing code', async () => {
    const id = await createInstance()
    const { id: linkId, token } = await handOut(id)
    const page = await openPage(token)
    expect(await page.start({ phone: '+55' })).toMatchObject({ status: 400, code: 'invalid_request' })
    expect(await page.start({ phone: '5511912340001' })).toMatchObject({ status: 202, data: { pairingCodesLeft: 2 } })
    const line = await until('the audit line', () =>
      service.logLines.find(({ action, instanceId }) => action === 'startLink' && instanceId === id),
    )
    expect(line['by']).toBe(`link ${linkId}`)
    expect(await page.start({ phone: '5511912340001' })).toMatchObject({ status: 429, code: 'too_many_attempts' })
    const code = await until('a pairing code', async () => (await page.read()).data.pairingCode)
    await network.typePairingCode(code, '5511912340001')
    await until('the number to be linked', async () => (await page.read()).data.linked)
  })

  test.each([
    ['', false],
    [', even after a kill -9 right after the call', true],
  ])('when it is revoked, its code ends and its page shows nothing more%s', async (_, isKilled) => {
    const id = await createInstance()
    const link = await handOut(id)
    const page = await openPage(link.token)
    await page.start()
    const qr = await until('a QR code', async () => (await page.read()).data.qr)
    expect((await byAdmin('GET', `/instances/${id}/links`)).data).toMatchObject([{ id: link.id, usedAt: null }])
    expect((await byAdmin('DELETE', `/instances/${id}/links/${link.id}`)).status).toBe(204)
    if (isKilled) await service.restart('SIGKILL')
    expect(await page.read()).toMatchObject({ status: 404, code: 'link_not_found' })
    expect(await page.start()).toMatchObject({ status: 404, code: 'link_not_found' })
    await service.admin.untilState(id, 'unlinked')
    await expect(network.scanQr(qr)).rejects.toThrow()
    expect(await byAdmin('DELETE', `/instances/${id}/links/${link.id}`)).toMatchObject({ code: 'link_not_found' })
    expect((await byAdmin('GET', `/instances/${id}/links`)).data).toEqual([])
  })

  test('when it expires while the service is down after a kill -9, its code ends', async () => {
    const id = await createInstance()
    const link = await handOut(id)
    const page = await openPage(link.token)
    await page.start()
    const qr = await until('a QR code', async () => (await page.read()).data.qr)
    await service.kill('SIGKILL')
    const database = new Sqlite(join(service.dataDir, 'pombal.db'))
    database.prepare('update handouts set expires_at = ? where id = ?').run(Date.now() - 1, link.id)
    database.close()
    await service.start()
    expect(await page.read()).toMatchObject({ status: 404, code: 'link_not_found' })
    await until('the request to end', async () => {
      const { state, qr: shown } = await service.admin.connection(id)
      return state === 'unlinked' && shown === null
    })
    await expect(network.scanQr(qr)).rejects.toThrow()
  })

  test('is not found any more once the operator who created it is removed', async () => {
    await using api = await ApiHarness.start()
    const { body: created } = await api.admin('POST', '/instances', { name: 'Shop', kind: 'whatsapp' })
    noteSecret(created.data.token)
    const { id, headers } = await createPerson(api, 'operator')
    const path = `/admin/v1/instances/${created.data.id}/links`
    const { body } = await api.call({ method: 'POST', path, headers, body: { expiresInMinutes: 5 } })
    const [, token] = body.data.url.split('#')
    noteSecret(token)
    const read = async () => (await api.call({ method: 'POST', path: '/link/read', body: { token } })).status
    expect(await read()).toBe(200)
    await api.admin('DELETE', `/accounts/${id}`)
    expect(await read()).toBe(404)
  })

  test('says when its pairing codes are used up', async () => {
    const spent = (handouts: Handouts): Handouts => ({
      create: (handout, now) => handouts.create(handout, now),
      find: key => handouts.find(key),
      list: instanceId => handouts.list(instanceId),
      revoke: (instanceId, linkId) => handouts.revoke(instanceId, linkId),
      endExpired: () => handouts.endExpired(),
      request: async () => ({ kind: 'codes_spent' }),
    })
    await using api = await ApiHarness.start({ store: ({ handouts }) => ({ handouts: spent(handouts) }) })
    const { body: created } = await api.admin('POST', '/instances', { name: 'Shop', kind: 'whatsapp' })
    const { body } = await api.admin('POST', `/instances/${created.data.id}/links`, { expiresInMinutes: 5 })
    const [, token] = body.data.url.split('#')
    noteSecret(token)
    noteSecret(created.data.token)
    const post = (path: string, more: object, cookie = '') =>
      fetch(api.url + path, {
        method: 'POST',
        headers: { cookie, 'content-type': 'application/json' },
        body: JSON.stringify({ token, ...more }),
      })
    const [cookie = ''] = ((await post('/link/read', {})).headers.get('set-cookie') ?? '').split(';')
    const refused = await post('/link/start', { phone: '5511912340001' }, cookie)
    const { error } = (await refused.json()) as { error: { code: string } }
    expect([refused.status, error.code]).toEqual([409, 'pairing_codes_spent'])
  })

  test.each([
    [{ expiresInMinutes: 0 }],
    [{ expiresInMinutes: 1_441 }],
    [{ expiresInMinutes: 5, returnUrl: 'javascript:alert(1)' }],
    [{ expiresInMinutes: 5, returnUrl: 'https://user:secret@example.com' }],
    [{ expiresInMinutes: 5, title: '' }],
    [{}],
  ])('is not created from %j', async body => {
    const id = await createInstance()
    expect(await byAdmin('POST', `/instances/${id}/links`, body)).toMatchObject({ status: 400 })
  })

  test('cannot be guessed: wrong tokens are limited, and block no sign-in', async () => {
    const wrong = 'x'.repeat(43)
    await until('a limit', async () => (await call('POST', '/link/read', { token: wrong })).status === 429)
    expect((await byAdmin('GET', '/instances')).status).toBe(200)
    expect(await call('POST', '/admin/v1/session', { key: service.adminKey })).toMatchObject({ status: 200 })
  })

  test('neither its page nor its calls are cached, framed, or send a referrer', async () => {
    const page = await fetch(`${service.url}/link`)
    expect(page.headers.get('cache-control')).toBe('no-store')
    expect(page.headers.get('referrer-policy')).toBe('no-referrer')
    expect(page.headers.get('x-frame-options')).toBe('DENY')
    const id = await createInstance()
    const { first } = await openPage((await handOut(id)).token)
    expect(first.headers.get('cache-control')).toBe('no-store')
    expect(first.headers.get('set-cookie')).toMatch(/; HttpOnly; SameSite=Strict/)
  })
})
