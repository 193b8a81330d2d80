import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ApiError } from '../../../api-client.ts'
import { ONE_STORE } from '../../../databases/one-store.ts'
import type { LocalProxyOptions } from '../../../proxies/local-proxy.ts'
import { until } from '../../../until.ts'
import { sha256 } from '../../media/harness.ts'
import { sampleFile } from '../../media/sample-files.ts'
import { LOGIN, ProxyHarness } from './harness.ts'

const CONTACT = '5511987650001'

type Kind = Pick<LocalProxyOptions, 'kind' | 'login'> & { tls?: boolean }

const KINDS: readonly (readonly [string, Kind])[] = [
  ['http with a user, to a server with TLS', { kind: 'http', login: LOGIN, tls: true }],
  ['https with a user', { kind: 'https', login: LOGIN }],
  ['socks5 with a user, to a server with TLS', { kind: 'socks5', login: LOGIN, tls: true }],
  ['http', { kind: 'http' }],
  ['socks5', { kind: 'socks5' }],
]

/** @returns the status and code of the refusal */
async function refusalOf(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => null,
    caught => caught,
  )
  if (!(error instanceof ApiError)) throw error ?? new Error('The call was accepted.')
  return `${error.status} ${error.code}`
}

test.each(KINDS)('everything goes through the proxy, from the first code on: %s', async (_, { tls, ...options }) => {
  await using harness = await ProxyHarness.open({ tls: tls === true })
  const { admin } = harness.service
  const proxy = await harness.listen(options)
  const { id, token } = await admin.createInstance('whatsapp')
  const shown = proxy.url(options.login && { user: LOGIN.user, password: '' }).replace(':@', '@')
  expect(await admin.setProxy(id, proxy.url())).toEqual({ url: shown })
  await harness.link(id)
  const instance = harness.service.instance(id, token)
  await harness.sendAndRead(instance, 'through the proxy')

  const { bytes } = sampleFile('document', 30_000)
  await instance.sendFile(CONTACT, bytes)
  const file = await until('the file', async () => (await harness.simulator.inbox(CONTACT))[0]?.media)
  expect(file.sha256).toBe(sha256(bytes))
  const { phone } = await admin.connection(id)
  const media = { type: 'document' as const, bytes }
  const { id: incoming } = await harness.simulator.writeAs({ from: CONTACT, to: phone ?? '', media })
  await until(`the file of ${incoming}`, async () =>
    (await admin.listEvents(id)).some(({ event }) => event === 'media.ready'),
  )

  const { through, past } = harness.countCallers(proxy)
  expect({ isUsed: through >= 4, past }).toEqual({ isUsed: true, past: 0 })
  const servers = [new URL(harness.simulator.url).host, ...harness.simulator.media.hosts]
  expect(new Set(proxy.asked)).toEqual(new Set([servers[0], ...servers.filter(host => proxy.asked.includes(host))]))
  expect(proxy.asked.some(host => harness.simulator.media.hosts.includes(host))).toBe(true)
  expect([(await admin.connection(id)).proxy, (await admin.health(id)).proxy]).toEqual([shown, shown])
})

describe('a proxy that does not work is refused, and nothing changes', () => {
  test('because it does not answer, refuses the login, does not reach WhatsApp or has no valid certificate', async () => {
    await using harness = await ProxyHarness.open()
    const { admin } = harness.service
    const good = await harness.listen({ kind: 'http' })
    const { id, token } = await admin.createInstance('whatsapp')
    await admin.setProxy(id, good.url())
    await harness.link(id)
    const refused = async (url: string) => refusalOf(admin.setProxy(id, url))

    const gone = await harness.listen({ kind: 'http' })
    const urls = [gone.url(), gone.url().replace('http', 'socks5'), gone.url().replace('http', 'https')]
    await gone.close()
    for (const url of urls) expect(await refused(url)).toBe('422 proxy_unreachable')
    for (const kind of ['http', 'https', 'socks5'] as const) {
      const proxy = await harness.listen({ kind, login: LOGIN })
      const wrong = { user: LOGIN.user, password: 'wrong' }
      expect([kind, await refused(proxy.url(wrong))]).toEqual([kind, '422 proxy_login_refused'])
      expect([kind, await refused(proxy.url().replace(/\/\/.*@/, '//'))]).toEqual([kind, '422 proxy_login_refused'])
      proxy.refuses = true
      expect([kind, await refused(proxy.url())]).toEqual([kind, '422 proxy_without_whatsapp'])
    }
    const nowhere = await harness.listen({
      kind: 'socks5',
      routes: { [new URL(harness.simulator.url).host]: '127.0.0.1:1' },
    })
    expect(await refused(nowhere.url())).toBe('422 proxy_without_whatsapp')
    const plain = await harness.listen({ kind: 'http' })
    expect(await refused(plain.url().replace('http', 'https'))).toBe('422 proxy_unreachable')
    const silent = await harness.listen({ kind: 'http' })
    silent.hangs = true
    expect(await refused(silent.url())).toBe('422 proxy_unreachable')

    expect(await admin.proxy(id)).toEqual({ url: good.url() })
    await harness.sendAndRead(harness.service.instance(id, token), 'still through the first')
    expect(harness.countCallers(good).past).toBe(0)
  })

  test('because its URL is not one of a proxy, or its instance is a sandbox', async () => {
    await using harness = await ProxyHarness.open()
    const { admin } = harness.service
    const { id } = await admin.createInstance('whatsapp')
    const urls = ['', 'proxy.example:1080', 'socks4://proxy.example', 'ftp://proxy.example', 'http://', 'http://a/b']
    const withLogin = ['http://:secret@proxy.example', 'http://a:%zz@proxy.example', 'socks5://a:%00b@proxy.example']
    const long = `socks5://${'a'.repeat(256)}:b@proxy.example`
    for (const url of [...urls, ...withLogin, 'http://a?b', long, `http://${'a'.repeat(2_100)}`])
      expect([url, await refusalOf(admin.setProxy(id, url))]).toEqual([url, '400 invalid_request'])
    expect(await admin.proxy(id)).toEqual({ url: null })
    const sandbox = await admin.createInstance('sandbox')
    const refusal = await refusalOf(admin.setProxy(sandbox.id, 'http://127.0.0.1:1'))
    expect(refusal).toBe('409 sandbox_without_proxy')
    expect(await admin.setProxy(sandbox.id, null)).toEqual({ url: null })
  })

  test('because the service may not connect to its address, unless PROXY_ALLOWED_NETWORKS names it', async () => {
    const NODE_ENV = 'production'
    await using harness = await ProxyHarness.open({ env: { NODE_ENV, PROXY_ALLOWED_NETWORKS: '127.0.0.1:1080' } })
    const { admin } = harness.service
    const { id } = await admin.createInstance('whatsapp')
    const proxy = await harness.listen({ kind: 'socks5' })
    for (const host of ['127.0.0.1', 'localhost', '[::1]', '169.254.169.254']) {
      const refusal = await refusalOf(admin.setProxy(id, proxy.url(undefined, host)))
      expect([host, refusal]).toEqual([host, '400 invalid_request'])
    }
    expect(proxy.asked).toEqual([])
    await using other = await ProxyHarness.open({
      env: { NODE_ENV, PROXY_ALLOWED_NETWORKS: `127.0.0.0/8:${proxy.port}` },
    })
    const allowed = await other.service.admin.createInstance('whatsapp')
    await other.service.admin.setProxy(allowed.id, proxy.url())
    await other.link(allowed.id)
    expect(other.countCallers(proxy).past).toBe(0)
  })
})

test('an instance that is connected goes through a new proxy immediately, then through another one or none', async () => {
  await using harness = await ProxyHarness.open()
  const { admin } = harness.service
  const { id, token } = await admin.createInstance('whatsapp')
  const other = await admin.createInstance('whatsapp')
  await harness.link(id)
  await harness.link(other.id, 'b')
  const instance = harness.service.instance(id, token)
  for (const kind of ['http', 'socks5'] as const) {
    const proxy = await harness.listen({ kind })
    harness.forgetCallers()
    await admin.setProxy(id, proxy.url())
    await until(`a connection through ${kind}`, () => harness.countCallers(proxy).through >= 2)
    await harness.sendAndRead(instance, `through ${kind}`)
    expect(harness.countCallers(proxy).past).toBe(0)
  }
  harness.forgetCallers()
  await admin.setProxy(id, null)
  await until('a connection without a proxy', () => harness.countCallers().past === 1)
  await harness.sendAndRead(instance, 'without a proxy')
})

test('a proxy that dies is the reason of the connection, with a remedy; when it is back, the queue continues through it', async () => {
  await using harness = await ProxyHarness.open()
  const { admin } = harness.service
  const { id, token } = await admin.createInstance('whatsapp')
  const proxy = await harness.listen({ kind: 'socks5', login: LOGIN })
  const url = proxy.url()
  await admin.setProxy(id, url)
  await harness.link(id)
  await proxy.close()
  const down = await until('the reason', async () => {
    const connection = await admin.connection(id)
    return connection.cause === 'proxy_failed' && connection
  })
  expect(down.reason).toMatch(/^The proxy could not be reached. Check its address .* Trying again in \d+ s\./)
  const instance = harness.service.instance(id, token)
  const { id: message } = await instance.send(CONTACT, 'when it is back')
  const again = await harness.listen({ kind: 'socks5', login: LOGIN }, Number(new URL(url).port))
  await until('it to be read', async () => (await instance.message(message)).status === 'read')
  expect(harness.countCallers(proxy, again).past).toBe(0)
  expect(await harness.simulator.inbox(CONTACT)).toHaveLength(1)
})

test('linking through a proxy that has died stops with its reason, and works when it is back', async () => {
  await using harness = await ProxyHarness.open()
  const { admin } = harness.service
  const { id } = await admin.createInstance('whatsapp')
  const proxy = await harness.listen({ kind: 'http' })
  await admin.setProxy(id, proxy.url())
  await proxy.close()
  await admin.connect(id)
  const rest = await until('it to rest', async () => {
    const connection = await admin.connection(id)
    return connection.reason.includes('Then connect again.') && connection
  })
  expect(rest).toMatchObject({ state: 'unlinked', cause: 'proxy_failed' })
  const again = await harness.listen({ kind: 'http' }, Number(new URL(rest.proxy ?? '').port))
  await harness.link(id)
  expect(harness.countCallers(proxy, again).past).toBe(0)
})

describe.each(ONE_STORE)('on %s', store => {
  test('a kill right after it was set loses nothing: the next process connects only through it', async () => {
    await using harness = await ProxyHarness.open({ store })
    const { admin } = harness.service
    const { id, token } = await admin.createInstance('whatsapp')
    await harness.link(id)
    const proxy = await harness.listen({ kind: 'socks5', login: LOGIN })
    await admin.setProxy(id, proxy.url())
    await harness.service.kill('SIGKILL')
    await harness.database.expireLeases()
    harness.forgetCallers()
    await harness.service.start()
    await harness.sendAndRead(harness.service.instance(id, token), 'after the kill')
    expect(harness.countCallers(proxy)).toMatchObject({ past: 0 })
  })
})

test('its password is in no answer, no audit entry, no log and no file', async () => {
  await using harness = await ProxyHarness.open()
  const { admin, adminKey } = harness.service
  const { id } = await admin.createInstance('whatsapp')
  const proxy = await harness.listen({ kind: 'http', login: LOGIN })
  await admin.setProxy(id, proxy.url())
  await harness.link(id)
  await proxy.close()
  await until('it to fail', async () => (await admin.connection(id)).cause === 'proxy_failed')
  const headers = { authorization: `Bearer ${adminKey}` }
  const answers: string[] = []
  for (const path of ['', '/connection', '/health', '/proxy', '/events', '/webhook'])
    answers.push(await (await fetch(`${harness.service.url}/admin/v1/instances/${id}${path}`, { headers })).text())
  const audit = await (await fetch(`${harness.service.url}/admin/v1/audit`, { headers })).text()
  expect(audit).toContain('setProxy')
  await harness.service.kill('SIGTERM')
  const { dataDir } = harness.service
  const files = readdirSync(dataDir, { recursive: true, withFileTypes: true }).filter(file => file.isFile())
  const contents = files.map(file => readFileSync(join(file.parentPath, file.name), 'latin1'))
  const everything = [...answers, audit, harness.service.wholeOutput, ...contents].join('\n')
  for (const form of [LOGIN.password, encodeURIComponent(LOGIN.password), encodeURI(LOGIN.password)])
    expect(everything.includes(form)).toBe(false)
})
