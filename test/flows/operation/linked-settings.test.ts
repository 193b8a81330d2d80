import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, inject, onTestFinished, test } from 'vitest'
import { createDatabase } from '../../databases/database.ts'
import { LONG_TEST_WITHIN_MS } from '../../deadlines.ts'
import { noteSecret } from '../../logs/log-capture.ts'
import { startNetwork } from '../../network.ts'
import { LocalProxy } from '../../proxies/local-proxy.ts'
import { Service } from '../../service.ts'
import { until } from '../../until.ts'

const PROGRAM = join(import.meta.dirname, '../../../bin/pombal.js')
const CONTACT = '5511987654321'
const LOGIN = { user: 'shop', password: 'a-password-of-a-proxy' }
const CALLS = { reject: true, text: 'Please write to us.' }

/** Runs a command of Pombal, which must succeed. */
async function run(args: readonly string[], env: Record<string, string>): Promise<void> {
  await promisify(execFile)(process.execPath, [PROGRAM, ...args], { env: { PATH: process.env['PATH'], ...env } })
}

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'pombal-linked-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** A browser that has opened the linking page. */
async function openLink(service: Service, id: string) {
  const post = (path: string, body: object, headers: Record<string, string>) =>
    fetch(service.url + path, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  const admin = { authorization: `Bearer ${service.adminKey}` }
  const created = await post(`/admin/v1/instances/${id}/links`, { expiresInMinutes: 60, title: 'Loja' }, admin)
  const { url } = ((await created.json()) as { data: { url: string } }).data
  const token = url.split('#')[1]!
  noteSecret(token)
  const opened = await post('/link/read', { token }, {})
  const cookie = opened.headers.get('set-cookie')!.split(';')[0]!
  noteSecret(cookie.split('=')[1]!)
  return {
    titleAt: async (at: Service) => {
      const headers = { cookie, 'content-type': 'application/json' }
      const answer = await fetch(`${at.url}/link/read`, { method: 'POST', headers, body: JSON.stringify({ token }) })
      return ((await answer.json()) as { data?: { title: string } }).data?.title
    },
  }
}

test(
  'a linked number keeps its proxy and its answer to calls, and an unlinked instance keeps its link, through a backup, a new master key and the move to PostgreSQL',
  async () => {
    noteSecret(LOGIN.password)
    const target = await createDatabase('postgres', inject('postgresUrl'))
    onTestFinished(() => target.dispose())
    const network = await startNetwork(['--claimed-pre-keys', '500'])
    onTestFinished(() => network.close())
    const proxy = await LocalProxy.listen({ kind: 'http', login: LOGIN })
    onTestFinished(() => proxy[Symbol.asyncDispose]())
    const settings = { WHATSAPP_URL: network.url, WHATSAPP_PASSKEY: 'on' }

    const original = temporaryFolder()
    const first = await new Service({ dataDir: original, env: settings }).start()
    const { id, token } = await first.admin.createInstance('whatsapp', 'Shop')
    const unlinked = await first.admin.createInstance('whatsapp', 'Bakery')
    await first.admin.setProxy(id, proxy.url())
    await first.admin.setCalls(id, CALLS)
    const link = await openLink(first, unlinked.id)
    await first.admin.connect(id)
    await network.scanQr(await until('a QR code', async () => (await first.admin.connection(id)).qr))
    await first.admin.untilState(id, 'connected')
    const shown = `http://${LOGIN.user}@127.0.0.1:${proxy.port}`

    /** Everything is still there, and the number connects through the proxy and no other way. */
    async function check(when: string, service: Service): Promise<void> {
      await service.admin.untilState(id, 'connected')
      const { proxy: used, phone } = await service.admin.connection(id)
      expect({ when, used, health: (await service.admin.health(id)).proxy }).toEqual({
        when,
        used: shown,
        health: shown,
      })
      expect(await service.admin.calls(id)).toEqual(CALLS)
      expect(await link.titleAt(service), when).toBe('Loja')
      expect(proxy.asked.length, when).toBeGreaterThan(0)
      proxy.asked.splice(0)
      const instance = service.instance(id, token)
      const { id: message } = await instance.send(CONTACT, when)
      await until('it to be read', async () => (await instance.message(message)).status === 'read')
      // While the proxy refuses connections, the number must not connect, because nothing may bypass the proxy.
      proxy.refuses = true
      await network.misbehave({ kind: 'cut', account: phone! })
      await until('the proxy to refuse', async () => (await service.admin.connection(id)).cause === 'proxy_failed')
      proxy.refuses = false
      await service.admin.untilState(id, 'connected')
      proxy.asked.splice(0)
      await service.kill('SIGTERM')
    }

    const backups = temporaryFolder()
    await run(['backup', backups], { DATA_DIR: original })
    await check('before', first)

    const dataDir = temporaryFolder()
    for (const file of ['master.key', 'admin.key']) copyFileSync(join(original, file), join(dataDir, file))
    await run(['restore', join(backups, readdirSync(backups)[0]!)], { DATA_DIR: dataDir })
    await check('restored', await new Service({ dataDir, env: settings }).start())

    await run(['rotate-keys'], { DATA_DIR: dataDir })
    const keyOf = (folder: string) => readFileSync(join(folder, 'master.key'), 'utf8').trim()
    expect(keyOf(dataDir)).not.toBe(keyOf(original))
    await check('under a new key', await new Service({ dataDir, env: settings }).start())

    const env = { ...target.env, DATA_DIR: dataDir, MASTER_KEY: keyOf(dataDir), ADMIN_KEY: first.adminKey }
    await run(['move-to-postgres'], env)
    await check('moved', await new Service({ dataDir, env: { ...settings, ...env } }).start())

    const sealed = async () => {
      const query = "select encode(sealed_proxy, 'hex') as sealed from connections where sealed_proxy is not null"
      return (await target.read(query, '')).map(row => row['sealed'])
    }
    const before = await sealed()
    const NEW_MASTER_KEY = randomBytes(32).toString('base64')
    await run(['rotate-keys'], { ...env, NEW_MASTER_KEY })
    expect(await sealed()).not.toEqual(before)
    await target.expireLeases()
    const last = await new Service({ dataDir, env: { ...settings, ...env, MASTER_KEY: NEW_MASTER_KEY } }).start()
    await check('moved, under a new key', last)
  },
  LONG_TEST_WITHIN_MS,
)
