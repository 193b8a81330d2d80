import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pino from 'pino'
import { SMTPServer } from 'smtp-server'
import { beforeEach, describe, expect, test } from 'vitest'
import { AlertSender } from '../../src/alerts/send.ts'
import { startAlerts } from '../../src/alerts/watch.ts'
import type { AlertChannel } from '../../src/domain/alert.ts'
import { type DiskSpace, isDiskNearlyFull } from '../../src/domain/disk.ts'
import { createAddressGuard } from '../../src/outbound/address-guard.ts'
import type { AlertAddress, Alerts } from '../../src/store/alerts/alerts.ts'
import { openStore } from '../../src/store/open-store.ts'
import type { Store } from '../../src/store/store.ts'
import { createPoster, type Poster } from '../../src/webhooks/posting/post.ts'
import { createOwned } from '../contract/fixture.ts'
import { isSigned, isStandardSigned, Receiver } from '../receiver.ts'
import { until } from '../until.ts'

const SECRET = `whsec_${randomBytes(32).toString('base64')}`
const PANEL = 'https://pombal.example/'
const MINUTE_MS = 60_000

function override(alerts: Alerts, changes: Partial<Alerts>): Alerts {
  return new Proxy(alerts, {
    get: (_, name: keyof Alerts) => changes[name] ?? (alerts[name] as (...args: unknown[]) => unknown).bind(alerts),
  })
}

describe('alerts', () => {
  let folder: string
  let store: Store
  let receiver: Receiver
  let poster: Poster
  /** By how much the watch's clock is ahead. */
  let aheadMs: number
  let disk: DiskSpace | null
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
    disk = space(500e9, 1_000e9)
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
  const space = (freeBytes: number, totalBytes: number): DiskSpace => {
    return { freeBytes, totalBytes, isNearlyFull: isDiskNearlyFull(freeBytes, totalBytes) }
  }
  const origin = () => new URL(receiver.url).origin

  function start(mail: { url: string; from: string } | null = null, alerts: Alerts = store.alerts): void {
    const sender = new AlertSender({ post: poster, mail, version: '1', now })
    watch = startAlerts({
      alerts,
      sender,
      diskSpace: async () => disk,
      host: 'node-a',
      url: PANEL,
      logger: pino({ level: 'silent' }),
      now,
      everyMs: 20,
      firstAfterMs: 0,
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

  test('problems are found while a target does not answer', async () => {
    await target('slack', { url: receiver.url })
    receiver.answerWith({ kind: 'hang' })
    await lose('Shop')
    start()
    await receiver.waitFor(1)
    await lose('Branch')
    await until('both alerts', async () => (await store.alerts.listOpen('node-a')).length === 2)
    expect(receiver.requests[0]!.endedAt).toBeNull()
    receiver.release()
  })

  test('a crash between sending and recording repeats the message with the same ID', async () => {
    await target('webhook', { url: receiver.url, secret: SECRET })
    await lose('Shop')
    start(null, override(store.alerts, { recordSent: async () => undefined }))
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
    disk = space(50e9, 1_000e9)
    start()
    disk = space(1e9, 20e9)
    await receiver.waitFor(1)
    expect(bodies()[0]).toMatchObject({ alerts: [{ rule: 'disk_nearly_full', subject: 'node-a', instanceName: null }] })
  })

  test('while the disk is unknown, other problems are announced, and the alert about the disk does not end', async () => {
    await target('webhook', { url: receiver.url, secret: SECRET })
    disk = space(1e9, 20e9)
    start()
    await receiver.waitFor(1)
    disk = null
    aheadMs += 2 * MINUTE_MS
    await lose('Shop')
    await receiver.waitFor(2)
    expect(bodies()[1]).toMatchObject({ alerts: [{ rule: 'linking_lost' }] })
    const diskAlerts = (await store.alerts.listOpen('node-a')).filter(({ rule }) => rule === 'disk_nearly_full')
    expect(diskAlerts).toMatchObject([{ goneSince: null }])
  })

  test('waiting notices are sent although the search for problems fails', async () => {
    await target('webhook', { url: receiver.url, secret: SECRET })
    const problem = { rule: 'number_down', subject: 'inst_1', since: 1, detail: 'Cut.', beganAt: now() } as const
    await store.alerts.apply(
      { noticed: [problem], reworded: [], began: [], gone: [], returned: [], ended: [], dropped: [] },
      now(),
    )
    start(null, override(store.alerts, { findProblems: () => Promise.reject(new Error('The query is too slow.')) }))
    await receiver.waitFor(1)
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
