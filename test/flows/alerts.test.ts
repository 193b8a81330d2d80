import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pino from 'pino'
import { SMTPServer } from 'smtp-server'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { AlertSender } from '../../src/alerts/send.ts'
import { startAlerts } from '../../src/alerts/watch.ts'
import type { AlertChannel } from '../../src/domain/alert.ts'
import { createAddressGuard } from '../../src/outbound/address-guard.ts'
import type { AlertAddress, Alerts } from '../../src/store/alerts/alerts.ts'
import { openStore } from '../../src/store/open-store.ts'
import type { Store } from '../../src/store/store.ts'
import { createPoster, type Poster } from '../../src/webhooks/posting/post.ts'
import { createOwned } from '../contract/fixture.ts'
import { isSigned, isStandardSigned, Receiver } from '../receiver.ts'
import { Service } from '../service.ts'
import { until } from '../until.ts'

const SECRET = `whsec_${randomBytes(32).toString('base64')}`
const PANEL = 'https://pombal.example/'
const MINUTE_MS = 60_000

describe('alerts', () => {
  let folder: string
  let store: Store
  let receiver: Receiver
  let poster: Poster
  /** By how much the watch's clock is ahead. */
  let aheadMs: number
  let disk: { free: number; total: number }
  let watch: { stop(): Promise<void> } | undefined

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'pombal-alerts-'))
    store = await openStore({
      dataDir: folder,
      masterKey: randomBytes(32),
      ratePerMinute: 100,
      logger: pino({ level: 'silent' }),
    })
    receiver = await new Receiver().listen()
    const guard = createAddressGuard({ loopbackAndPrivateAllowed: true, allowedNetworks: [], ownPorts: [] })
    poster = createPoster({ guard, timeoutMs: 5_000 })
    aheadMs = 0
    disk = { free: 500e9, total: 1_000e9 }
    return async () => {
      await watch?.stop()
      watch = undefined
      await poster.close()
      await receiver.close()
      await store.close()
      rmSync(folder, { recursive: true, force: true })
    }
  })

  const now = () => Date.now() + aheadMs
  const origin = () => new URL(receiver.url).origin

  function start(mail: { url: string; from: string } | null = null, alerts: Alerts = store.alerts): void {
    const sender = new AlertSender({ post: poster, mail, version: '1', now })
    watch = startAlerts({
      alerts,
      sender,
      dataDir: folder,
      host: 'node-a',
      url: PANEL,
      logger: pino({ level: 'silent' }),
      now,
      everyMs: 20,
      firstAfterMs: 0,
      readDisk: async () => disk,
    })
  }

  const target = (channel: AlertChannel, address: AlertAddress) =>
    store.alerts.createTarget({ channel, name: 'Night shift', address }, now())
  const bodies = () => receiver.requests.map(({ body }) => JSON.parse(body.toString()) as Record<string, unknown>)

  async function lose(name: string): Promise<() => Promise<void>> {
    const lease = await createOwned(store, { name })
    await store.connections.record(
      lease,
      { state: 'logged_out', reason: 'Unlinked on the phone.', cause: 'logged_out_by_phone' },
      now(),
    )
    return () =>
      store.connections.record(lease, { state: 'unlinked', reason: 'Not linked.', cause: 'never_linked' }, now())
  }

  test('a signed message arrives when a problem begins, and another one when it is solved', async () => {
    await target('webhook', { url: receiver.url, secret: SECRET })
    const solve = await lose('Shop')
    start()
    await receiver.waitFor(1)
    const [began] = receiver.requests
    expect(isSigned(began!, SECRET)).toBe(true)
    expect(isStandardSigned(began!, SECRET)).toBe(true)
    const problem = { rule: 'linking_lost', instanceName: 'Shop', detail: 'Unlinked on the phone.' }
    expect(bodies()[0]).toMatchObject({
      event: 'alerts',
      url: PANEL,
      alerts: [{ ...problem, status: 'began', endedAt: null }],
    })
    await solve()
    await until('the problem to be gone', async () => (await store.alerts.listOpen('node-a'))[0]?.goneSince != null)
    expect(receiver.requests).toHaveLength(1)
    aheadMs += MINUTE_MS
    await receiver.waitFor(2)
    expect(bodies()[1]).toMatchObject({ alerts: [{ ...problem, status: 'ended', endedAt: expect.any(String) }] })
  })

  test('many problems at once are announced in one message', async () => {
    await target('ntfy', { url: `${origin()}/topic` })
    for (let index = 0; index < 30; index += 1) await lose(`Shop ${index}`)
    start()
    await receiver.waitFor(1)
    const [{ title, message } = {}] = bodies()
    expect(title).toBe('Pombal: 30 numbers were unlinked')
    expect(String(message).split('\n')).toHaveLength(21)
    expect(message).toContain('… and 10 more')
    await until('the message to be recorded', async () => (await store.alerts.listTargets())[0]?.lastSentAt != null)
    expect(receiver.requests).toHaveLength(1)
  })

  test('a target that fails is tried again with the same message and holds up no other target', async () => {
    await target('slack', { url: `${origin()}/dead` })
    await target('discord', { url: `${origin()}/works` })
    receiver.answerWith(({ path }) =>
      path === '/dead' ? { kind: 'status', status: 503 } : { kind: 'status', status: 204 },
    )
    await lose('Shop')
    start()
    await receiver.waitFor(2)
    const find = async (channel: AlertChannel) =>
      (await store.alerts.listTargets()).find(target => target.channel === channel)!
    await until('the failure to be recorded', async () => (await find('slack')).failures > 0)
    expect(await find('slack')).toMatchObject({ lastError: expect.stringContaining('503'), lastSentAt: null })
    await until('the other message to be recorded', async () => (await find('discord')).lastSentAt !== null)
    expect(await find('discord')).toMatchObject({ failures: 0, lastError: null })
  })

  test('a crash between sending and recording repeats the message with the same ID', async () => {
    await target('webhook', { url: receiver.url, secret: SECRET })
    await lose('Shop')
    const dies = new Proxy(store.alerts, {
      get(alerts, name: keyof Alerts) {
        if (name === 'recordSent') return async () => undefined
        return (alerts[name] as (...args: unknown[]) => unknown).bind(alerts)
      },
    })
    start(null, dies)
    await receiver.waitFor(1)
    await watch?.stop()
    // Its claim expires.
    const due = { target: (await store.alerts.listTargets())[0]!, notices: [] }
    await store.alerts.recordFailed(due, 'Its node died.', 0)
    start()
    await receiver.waitFor(2)
    const [first, second] = receiver.requests
    expect(second!.headers['webhook-id']).toBe(first!.headers['webhook-id'])
    expect(second!.body).toEqual(first!.body)
  })

  test('a disk that is nearly full is announced, and a large disk with much free space is not', async () => {
    await target('webhook', { url: receiver.url, secret: SECRET })
    disk = { free: 50e9, total: 1_000e9 }
    start()
    disk = { free: 1e9, total: 20e9 }
    await receiver.waitFor(1)
    expect(bodies()[0]).toMatchObject({ alerts: [{ rule: 'disk_nearly_full', subject: 'node-a', instanceName: null }] })
  })

  test('each chat service gets its own format, and the name of an instance cannot cause mentions or formatting', async () => {
    await target('ntfy', { url: `${origin()}/base/topic`, token: 'tk_secret' })
    await target('slack', { url: `${origin()}/slack` })
    await target('discord', { url: `${origin()}/discord` })
    await target('telegram', { url: `${origin()}/bot1:x/sendMessage`, chatId: '-100' })
    await lose('Shop <!channel> @everyone')
    start()
    await receiver.waitFor(4)
    const at = (path: string) => receiver.requests.find(request => request.path === path)!
    const json = (path: string) => JSON.parse(at(path).body.toString()) as Record<string, unknown>
    expect(at('/base/').headers['authorization']).toBe('Bearer tk_secret')
    expect(json('/base/')).toMatchObject({
      topic: 'topic',
      priority: 4,
      click: PANEL,
      title: 'Pombal: a number was unlinked',
    })
    expect(json('/slack')['text']).toContain('Shop &lt;!channel&gt;')
    expect(json('/discord')).toMatchObject({
      allowed_mentions: { parse: [] },
      content: expect.stringContaining('Shop'),
    })
    expect(json('/bot1:x/sendMessage')).toMatchObject({ chat_id: '-100', text: expect.stringContaining('Shop') })
  })

  test('a message about many numbers fits its chat: it has whole lines, a count of the rest, and the address', async () => {
    await target('ntfy', { url: `${origin()}/base/topic` })
    await target('discord', { url: `${origin()}/discord` })
    await target('telegram', { url: `${origin()}/bot1:x/sendMessage`, chatId: '-100' })
    for (let number = 1; number <= 25; number += 1) await lose('🦜'.repeat(100))
    start()
    await receiver.waitFor(3)
    const at = (path: string) => receiver.requests.find(request => request.path === path)!
    const sent = (path: string, field: string) =>
      String((JSON.parse(at(path).body.toString()) as Record<string, unknown>)[field])
    const ntfy = sent('/base/', 'message')
    const discord = sent('/discord', 'content')
    const telegram = sent('/bot1:x/sendMessage', 'text')
    expect(Buffer.byteLength(ntfy)).toBeLessThanOrEqual(4_096)
    expect(discord.length).toBeLessThanOrEqual(2_000)
    expect(telegram.length).toBeLessThanOrEqual(4_096)
    for (const text of [ntfy, discord, telegram]) {
      const problems = text.split('\n').filter(line => line.startsWith('⚠'))
      expect(problems.length).toBeGreaterThan(2)
      for (const line of problems) expect(line).toMatch(/Messages that were waiting have failed\.$/)
      expect(text).toContain(`… and ${25 - problems.length} more, in the panel.`)
    }
    for (const text of [discord, telegram]) expect(text.endsWith(PANEL)).toBe(true)
  })

  test('an e-mail arrives through the mail server of the settings', async () => {
    const mails: string[] = []
    const server = new SMTPServer({
      authOptional: true,
      disabledCommands: ['STARTTLS'],
      onData(stream, _session, done) {
        let text = ''
        stream.setEncoding('utf8').on('data', part => {
          text += part
        })
        stream.on('end', () => {
          mails.push(text)
          done()
        })
      },
    })
    server.listen(0, '127.0.0.1')
    await once(server.server, 'listening')
    const { port } = server.server.address() as AddressInfo
    await target('email', { to: 'night@example.com' })
    await lose('Shop')
    start({ url: `smtp://127.0.0.1:${port}`, from: 'pombal@example.com' })
    await until('the e-mail', () => mails.length === 1)
    expect(mails[0]).toContain('To: night@example.com')
    expect(mails[0]).toContain('Subject: Pombal: a number was unlinked')
    await new Promise<void>(resolve => server.close(() => resolve()))
  })
})

describe('the management of alerts', () => {
  let service: Service
  let receiver: Receiver

  beforeEach(async () => {
    service = await new Service({ env: { SANDBOX: 'on' } }).start()
    receiver = await new Receiver().listen()
  })
  afterEach(async () => {
    await service.dispose()
    await receiver.close()
  })

  async function call(method: string, path: string, body?: object) {
    const response = await fetch(`${service.url}/admin/v1/alerts${path}`, {
      method,
      headers: { Authorization: `Bearer ${service.adminKey}`, ...(body && { 'Content-Type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    return {
      status: response.status,
      text,
      ...(text === '' ? {} : (JSON.parse(text) as { data?: never; error?: never })),
    } as {
      status: number
      text: string
      data: Record<string, never> & Record<string, never>[]
      error: { code: string; details?: { field: string }[] }
    }
  }

  test('a target is added, tested, listed without its secrets, and removed', async () => {
    const url = `${receiver.url}/secret-topic`
    const created = await call('POST', '/targets', { name: 'Night shift', channel: 'ntfy', url, token: 'tk_secret' })
    expect(created).toMatchObject({
      status: 201,
      data: { target: { name: 'Night shift', channel: 'ntfy' }, secret: null },
    })
    const { target } = created.data as unknown as { target: { id: string } }
    expect(await call('POST', `/targets/${target.id}/test`)).toMatchObject({ status: 200, data: { error: null } })
    expect(receiver.requests).toHaveLength(1)
    const listed = await call('GET', '/targets')
    expect(listed.data).toHaveLength(1)
    expect(listed.text + created.text).not.toMatch(/tk_secret|secret-topic/)
    expect((await call('DELETE', `/targets/${target.id}`)).status).toBe(204)
    expect(await call('DELETE', `/targets/${target.id}`)).toMatchObject({
      status: 404,
      error: { code: 'alert_target_not_found' },
    })
    expect(await call('POST', `/targets/${target.id}/test`)).toMatchObject({ status: 404 })
    expect(service.output).not.toMatch(/tk_secret|secret-topic/)
  })

  test('the secret of a webhook is shown once, and the test of a target that refuses returns the reason', async () => {
    receiver.answerWith(() => ({ kind: 'status', status: 500, body: 'broken' }))
    const created = await call('POST', '/targets', { name: 'Ops', channel: 'webhook', url: receiver.url })
    const { target, secret } = created.data as unknown as { target: { id: string }; secret: string }
    expect(secret).toMatch(/^whsec_/)
    expect(await call('POST', `/targets/${target.id}/test`)).toMatchObject({ data: { error: 'Answered 500: broken' } })
    expect(isStandardSigned(receiver.requests[0]!, secret)).toBe(true)
    expect((await call('GET', '/targets')).text).not.toContain(secret)
  })

  test.each([
    ['a field of another channel', { channel: 'slack', url: 'https://hooks.example/x', chatId: '1' }, 'chatId'],
    ['no chat', { channel: 'telegram', url: 'https://api.example/bot1/sendMessage' }, 'chatId'],
    ['no URL', { channel: 'webhook' }, 'url'],
    ['no topic', { channel: 'ntfy', url: 'https://ntfy.example/' }, 'url'],
    ['e-mail without a mail server', { channel: 'email', to: 'a@example.com' }, 'channel'],
    ['a line break in an e-mail address', { channel: 'email', to: 'a@example.com\nBcc: b@example.com' }, '/to'],
    ['a metadata address', { channel: 'webhook', url: 'http://169.254.169.254/' }, 'url'],
    ['an unknown channel', { channel: 'fax' }, '/channel'],
  ])('%s is refused', async (_what, body, field) => {
    const refused = await call('POST', '/targets', { name: 'Ops', ...body })
    expect(refused).toMatchObject({ status: 400, error: { code: 'invalid_request' } })
    expect(JSON.stringify(refused.error)).toContain(field.replace('/', ''))
    expect((await call('GET', '/targets')).data).toEqual([])
  })

  test('the delay of a rule is set, and a nonsensical one is refused', async () => {
    expect((await call('PUT', '/rules/number_down', { afterMinutes: 30 })).data).toContainEqual({
      rule: 'number_down',
      afterMinutes: 30,
    })
    expect((await call('PUT', '/rules/number_down', { afterMinutes: null })).status).toBe(200)
    expect((await call('GET', '/rules')).data).toContainEqual({ rule: 'number_down', afterMinutes: null })
    expect((await call('PUT', '/rules/number_down', { afterMinutes: -1 })).status).toBe(400)
    expect((await call('PUT', '/rules/moon', { afterMinutes: 1 })).status).toBe(400)
    expect(await call('GET', '')).toMatchObject({ status: 200, data: [] })
  })
})
