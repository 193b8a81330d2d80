import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSimulator } from '@pombal/simulator'
import { DEFAULT_CONNECTION_CONFIG } from 'baileys'
import Sqlite from 'better-sqlite3'
import { afterEach, expect, test } from 'vitest'
import { newMessageId } from '../../../src/domain/ids.ts'
import { openKeys } from '../../../src/keys.ts'
import { openStore } from '../../../src/store/open-store.ts'
import { acceptPrepared, createConnected } from '../../contract/fixture.ts'
import { findFreePort } from '../../free-port.ts'
import { listeningPorts } from '../../listening-ports.ts'
import { Receiver } from '../../receiver.ts'
import { Service } from '../../service.ts'
import { until } from '../../until.ts'

/** Each setting has its effect on the service (contract §8). */

const CONTACT = '5511987654321'
const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000
const RECONNECTING_MS = 5 * 60_000
const LEFT_MS = 12_000
const DEFAULT_WEBHOOK_TIMEOUT_MS = 10_000
const toDispose: (() => unknown)[] = []
afterEach(async () => {
  for (const dispose of toDispose.splice(0).reverse()) await dispose()
})

async function startService(env: Record<string, string>, dataDir?: string): Promise<Service> {
  const service = new Service({ env, ...(dataDir !== undefined && { dataDir }) })
  toDispose.push(() => service.dispose())
  return service.start()
}

async function startReceiver(): Promise<Receiver> {
  const receiver = await new Receiver().listen()
  toDispose.push(() => receiver.close())
  return receiver
}

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'pombal-settings-'))
  toDispose.push(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** The attempts in their order, as the management API shows them. */
async function attemptsOf(service: Service, id: string, eventId: string) {
  const response = await fetch(`${service.url}/admin/v1/instances/${id}/events/${eventId}`, {
    headers: { authorization: `Bearer ${service.adminKey}` },
  })
  const { data } = (await response.json()) as {
    data: { deliveries: { state: string; attempts: { error: string | null; durationMs: number }[] }[] }
  }
  return data.deliveries[0]!
}

function switchPhone(service: Service, id: string, on: boolean): Promise<Response> {
  return fetch(`${service.url}/admin/v1/instances/${id}/sandbox/phone`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${service.adminKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ on }),
  })
}

test('WEBHOOK_TIMEOUT_MS limits the duration of an attempt, WEBHOOK_RETRY_DELAYS_MS the number of attempts', async () => {
  const receiver = await startReceiver()
  receiver.answerWith({ kind: 'hang' })
  const service = await startService({ WEBHOOK_TIMEOUT_MS: '400', WEBHOOK_RETRY_DELAYS_MS: '100' })
  const { id, token } = await service.admin.createConnected()
  await service.instance(id, token).setWebhook(receiver.url)
  await service.admin.writeAsContact(id, { from: CONTACT, text: 'hello' })
  const event = await until('the event', async () => (await service.admin.listEvents(id, '?kind=message.received'))[0])
  const delivery = await until('its end', async () => {
    const shown = await attemptsOf(service, id, event.id)
    return shown.state === 'exhausted' && shown
  })
  expect(delivery.attempts.map(({ error }) => error)).toEqual(['timeout', 'timeout'])
  for (const { durationMs } of delivery.attempts) {
    expect(durationMs).toBeGreaterThanOrEqual(395)
    expect(durationMs).toBeLessThan(DEFAULT_WEBHOOK_TIMEOUT_MS)
  }
})

test('MESSAGE_TTL_HOURS is how long a message is tried; one that was never written to WhatsApp then expires', async () => {
  const ttlMs = 1_500
  const service = await startService({ MESSAGE_TTL_HOURS: (ttlMs / HOUR_MS).toFixed(8) })
  const { id, token } = await service.admin.createConnected()
  const instance = service.instance(id, token)
  await switchPhone(service, id, false)
  await service.admin.untilState(id, 'reconnecting')
  const { id: message } = await instance.send(CONTACT, 'too late')
  const failed = await until('it to fail', async () => {
    const shown = await instance.message(message)
    return shown.status === 'failed' && shown
  })
  expect(failed.error?.code).toBe('expired')
  expect(Date.parse(failed.failedAt ?? '') - Date.parse(failed.createdAt)).toBeGreaterThanOrEqual(ttlMs)
})

test('RETENTION_DAYS is how long messages and their events are kept', async () => {
  const dataDir = makeFolder()
  const { masterKey } = openKeys({ dataDir, databaseUrl: null, adminKey: null, masterKey: null })
  const store = await openStore({ dataDir, masterKey, ratePerMinute: 1 })
  const lease = await createConnected(store)
  const now = Date.now()
  const [old, young, late] = await Promise.all(
    [2.5, 1.5, 2.5].map(days => acceptPrepared(store, lease, { id: newMessageId(now - days * DAY_MS) })),
  )
  // The age counts from the last event.
  for (const [message, days] of [
    [old!, 2.5],
    [young!, 1.5],
    [late!, 1.5],
  ] as const) {
    await store.messages.recordProgress(lease, message.whatsappId, 'read', now - days * DAY_MS)
  }
  await store.close()

  const service = await startService({ RETENTION_DAYS: '2', WEBHOOK_RETRY_DELAYS_MS: '10' }, dataDir)
  const listed = async () => (await service.admin.listMessages(lease.instanceId)).map(({ id }) => id)
  await until('the old one to go', async () => !(await listed()).includes(old!.id))
  expect((await listed()).toSorted()).toEqual([young!.id, late!.id].toSorted())
})

test('with nothing set it listens on 127.0.0.1:3000 alone, and keeps its data in ./data', async ({ skip }) => {
  const cwd = makeFolder()
  const unset = { HOST: undefined, PORT: undefined, DATA_DIR: undefined }
  const service = new Service({ cwd, dataDir: join(cwd, 'data'), env: unset })
  toDispose.push(() => service.dispose())
  await service.start().catch(error => {
    const isTaken = service.output.includes('Port 3000 of 127.0.0.1 is in use')
    skip(isTaken, 'Port 3000 is taken on this machine.')
    throw error
  })
  expect(service.output).toMatch(/listens on http:\/\/127\.0\.0\.1:3000\n/)
  expect(service.output).toMatch(/Data +\.\/data\n/)
  expect(readdirSync(join(cwd, 'data'))).toEqual(expect.arrayContaining(['admin.key', 'master.key', 'pombal.db']))
  expect((await fetch('http://127.0.0.1:3000/readyz')).status).toBe(200)
  for (const address of ['127.0.0.2', '[::1]']) await expect(fetch(`http://${address}:3000/readyz`)).rejects.toThrow()
})

test('WHATSAPP_VERSION is the version sent to WhatsApp at login; without it, the driver sends its own version', async () => {
  const network = await createSimulator({ claimedPreKeys: 500 })
  toDispose.push(() => network.close())

  async function toldWith(env: Record<string, string>): Promise<string | undefined> {
    const { admin } = await startService({ WHATSAPP_URL: network.url, SANDBOX: 'off', ...env })
    const { id } = await admin.createInstance('whatsapp')
    await admin.connect(id)
    const { phone } = await network.scanQr(await until('the QR code', async () => (await admin.connection(id)).qr))
    await admin.untilState(id, 'connected')
    return (await network.listAccounts()).find(account => account.phone === phone)?.version
  }
  const told = await Promise.all([toldWith({ WHATSAPP_VERSION: '2.3000.1999999999' }), toldWith({})])
  expect(told).toEqual(['2.3000.1999999999', DEFAULT_CONNECTION_CONFIG.version.join('.')])
})

test('PUBLIC_URL is the address shown to people; behind it webhooks cannot reach this machine, and cookies are Secure', async () => {
  const port = await findFreePort()
  const service = await startService({ PUBLIC_URL: 'https://pombal.example', PORT: String(port) })
  expect(service.output).toContain('listens on https://pombal.example\n')
  const at = `http://127.0.0.1:${port}`
  const ask = async (method: string, path: string, body: object) =>
    fetch(`${at}${path}`, {
      method,
      headers: { authorization: `Bearer ${service.adminKey}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  const made = await ask('POST', '/admin/v1/instances', { kind: 'whatsapp' })
  const { data } = (await made.json()) as { data: { id: string } }
  for (const url of ['http://127.0.0.1:9/', 'http://10.1.2.3/', 'http://[::1]:9/']) {
    expect((await ask('PUT', `/admin/v1/instances/${data.id}/webhook`, { url })).status).toBe(400)
  }
  expect((await ask('PUT', `/admin/v1/instances/${data.id}/webhook`, { url: 'https://93.184.216.34/' })).status).toBe(
    200,
  )
  const session = await ask('POST', '/admin/v1/session', { key: service.adminKey })
  expect(session.headers.get('set-cookie')).toMatch(/; Secure$/)
})

test("TRUSTED_PROXIES may set the caller's scheme: a proxy’s https makes cookies Secure", async () => {
  const service = await startService({ TRUSTED_PROXIES: '10.0.0.0/8,127.0.0.1' })
  const signIn = await fetch(`${service.url}/admin/v1/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-forwarded-proto': 'https' },
    body: JSON.stringify({ key: service.adminKey }),
  })
  expect(signIn.headers.get('set-cookie')).toMatch(/; Secure$/)
})

test('NODE_ENV=production disables the sandbox, and webhooks cannot reach this machine', async () => {
  const receiver = await startReceiver()
  const service = await startService({ NODE_ENV: 'production' })
  await expect(service.admin.createInstance('sandbox')).rejects.toMatchObject({ code: 'sandbox_disabled' })
  const { id, token } = await service.admin.createInstance('whatsapp')
  const refused = service.instance(id, token).setWebhook(receiver.url)
  await expect(refused).rejects.toMatchObject({ status: 400, code: 'invalid_request' })
})

test('WEBHOOK_ALLOWED_NETWORKS lets webhooks reach a network in production, by address and by name', async () => {
  const receiver = await startReceiver()
  const env = { NODE_ENV: 'production', SANDBOX: 'on', WEBHOOK_ALLOWED_NETWORKS: '10.0.0.0/8, 127.0.0.0/8' }
  const service = await startService(env)
  const { id, token } = await service.admin.createConnected()
  for (const host of ['127.0.0.1', 'localhost']) {
    await service.instance(id, token).setWebhook(`http://${host}:${receiver.port}/${host}`)
    await service.admin.writeAsContact(id, { from: CONTACT, text: 'hello' })
    await receiver.waitFor(requests => requests.some(({ path }) => path === `/${host}`))
  }
})

test("with nothing set webhooks reach this machine, but neither Pombal's own port nor link-local addresses", async () => {
  const receiver = await startReceiver()
  const service = await startService({})
  const { id, token } = await service.admin.createConnected()
  const instance = service.instance(id, token)
  for (const url of [`${service.url}/healthz`, 'http://169.254.169.254/latest/meta-data/', 'http://[fe80::1]/']) {
    await expect(instance.setWebhook(url)).rejects.toMatchObject({ status: 400, code: 'invalid_request' })
  }
  await instance.setWebhook(`http://localhost:${new URL(service.url!).port}/healthz`)
  await service.admin.writeAsContact(id, { from: CONTACT, text: 'hello' })
  const event = await until('the event', async () => (await service.admin.listEvents(id, '?kind=message.received'))[0])
  const attempt = await until('an attempt', async () => (await attemptsOf(service, id, event.id)).attempts[0])
  expect(attempt.error).toBe('blocked_address')
  await instance.setWebhook(receiver.url)
  await service.admin.writeAsContact(id, { from: CONTACT, text: 'hello again' })
  await receiver.waitFor(1)
})

test.runIf(process.platform === 'linux')(
  "webhooks never reach the ports of the sandbox's network and its files, by address or by name",
  async () => {
    const service = await startService({ WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8, ::1/128' })
    const { id, token } = await service.admin.createConnected()
    const instance = service.instance(id, token)
    const ports = listeningPorts(service.pid!).filter(port => port !== Number(new URL(service.url!).port))
    expect(ports).toHaveLength(2)
    for (const [index, port] of ports.entries()) {
      for (const host of ['127.0.0.1', '127.0.0.2', '0.0.0.0', '[::ffff:127.0.0.1]']) {
        const refused = instance.setWebhook(`http://${host}:${port}/`)
        await expect(refused).rejects.toMatchObject({ status: 400, code: 'invalid_request' })
      }
      await instance.setWebhook(`http://localhost:${port}/`)
      await service.admin.writeAsContact(id, { from: CONTACT, text: 'hello' })
      const received = () => service.admin.listEvents(id, '?kind=message.received')
      await until('the event', async () => (await received()).length > index)
      const [event] = await received()
      const attempt = await until('an attempt', async () => (await attemptsOf(service, id, event!.id)).attempts[0])
      expect(attempt.error).toBe('blocked_address')
    }
  },
)

test('while HOST is not loopback, webhooks cannot reach this machine, by address or by name', async () => {
  const receiver = await startReceiver()
  const service = await startService({ HOST: '0.0.0.0', WEBHOOK_ALLOWED_NETWORKS: '10.0.0.0/8' })
  const { id, token } = await service.admin.createConnected()
  await expect(service.instance(id, token).setWebhook(receiver.url)).rejects.toMatchObject({ code: 'invalid_request' })
  await service.instance(id, token).setWebhook(`http://localhost:${receiver.port}/`)
  await service.admin.writeAsContact(id, { from: CONTACT, text: 'hello' })
  const event = await until('the event', async () => (await service.admin.listEvents(id, '?kind=message.received'))[0])
  const attempt = await until('an attempt', async () => (await attemptsOf(service, id, event.id)).attempts[0])
  expect(attempt.error).toBe('blocked_address')
  expect(receiver.requests).toEqual([])
})

test('RATE_LIMIT_PER_MINUTE is how many calls an instance may make', async () => {
  const service = await startService({ RATE_LIMIT_PER_MINUTE: '2' })
  const { id, token } = await service.admin.createInstance('whatsapp')
  const instance = service.instance(id, token)
  for (let call = 0; call < 2; call += 1) await instance.instance()
  await expect(instance.instance()).rejects.toMatchObject({ status: 429, code: 'rate_limit_exceeded' })
})

test('an instance without a connection is reconnecting for 5 minutes, then disconnected, and recovers', async () => {
  const service = await startService({})
  const { id, token } = await service.admin.createConnected()
  const instance = service.instance(id, token)
  await switchPhone(service, id, false)
  await service.admin.untilState(id, 'reconnecting')
  const { id: message } = await instance.send(CONTACT, 'still accepted')

  // Skips all but the last seconds of the 5 minutes.
  const db = new Sqlite(join(service.dataDir, 'pombal.db'))
  db.prepare('update connections set last_connected_at = ?').run(Date.now() - RECONNECTING_MS + LEFT_MS)
  db.close()
  const turnsAt = performance.now() + LEFT_MS
  expect(await instance.instance()).toMatchObject({ state: 'reconnecting' })
  await service.admin.untilState(id, 'disconnected')
  expect(performance.now()).toBeGreaterThan(turnsAt - 100)
  await expect(instance.send(CONTACT, 'no more')).rejects.toMatchObject({ status: 422, code: 'instance_not_connected' })
  await service.restart()
  await service.admin.untilState(id, 'connected')
  await until('the first', async () => (await instance.message(message)).status === 'read')
})
