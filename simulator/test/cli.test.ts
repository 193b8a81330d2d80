import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ReceivedMessage } from '@pombal/simulator'
import { describe, expect, it, onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import { sha256 } from './media/media-world.ts'
import { temporaryFolder } from './temporary-folder.ts'
import { until } from './wait.ts'
import { startClient } from './world.ts'

const CLI = fileURLToPath(new URL('../src/cli.ts', import.meta.url))
const PROGRAM = fileURLToPath(new URL('./media/media-program.ts', import.meta.url))

async function startProgram(...args: string[]): Promise<{ url: string; http: string; program: ChildProcess }> {
  const program = spawn('node', [CLI, '--port', '0', ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void program.kill('SIGKILL'))
  let printed = ''
  program.stdout!.on('data', chunk => (printed += chunk))
  const [url] = await until(() => /ws:\S+/.exec(printed), 'the line with the URL')
  return { url, http: url.replace('ws:', 'http:').replace('/ws/chat', ''), program }
}

async function call(url: string, method = 'GET', body?: unknown) {
  const response = await fetch(url, {
    method,
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  return { status: response.status, body: (await response.json()) as Record<string, never> }
}

describe('the stand-alone program', () => {
  it('links a client over HTTP, writes to it, and returns what the phones have received', async () => {
    const { url, http, program } = await startProgram('--claimed-pre-keys', '500')
    const client = startClient(url)
    const qr = await until(() => client.seen.qrs[0])
    const scanned = await call(`${http}/admin/mock-phone/scan-qr?phone=5511987650000`, 'POST', qr)
    expect(scanned).toEqual({ status: 200, body: { phone: '5511987650000' } })
    await until(() => client.isOpen)
    const contact = { from: '5511999990001', to: client.phone, text: 'hello', name: 'Ana' }
    const { body: sent } = await call(`${http}/admin/messages`, 'POST', contact)
    await until(() => client.texts().includes('hello'))
    expect((await call(`${http}/admin/phones/${client.phone}/messages`)).body).toMatchObject({ messages: [sent] })
    expect((await call(`${http}/admin/accounts`)).body).toMatchObject({
      accounts: [{ phone: client.phone, linked: true, online: true }],
    })
    const group = '120363000000000009@g.us'
    await call(`${http}/admin/groups/${group}/members`, 'POST', { members: [client.phone, '5511999990002'] })
    expect((await client.sock.groupMetadata(group)).participants).toHaveLength(4)
    await call(`${http}/admin/mock-phone/unlink`, 'POST', { phone: client.phone })
    await until(() => client.seen.closes.includes(401))

    const coded = startClient(url)
    await until(() => coded.seen.qrs[0])
    const code = await coded.sock.requestPairingCode(client.phone)
    const entered = await call(`${http}/admin/mock-phone/pairing-code`, 'POST', { code, phone: client.phone })
    expect(entered).toEqual({ status: 200, body: { phone: client.phone } })
    await until(() => coded.isOpen)

    program.kill('SIGTERM')
    expect(await once(program, 'exit')).toEqual([0, null])
  })

  it('exchanges files with a program that only trusts its certificate, and writes files over HTTP', async () => {
    const folder = await temporaryFolder()
    const certificate = join(folder, 'ca.pem')
    const options = ['--claimed-pre-keys', '500', '--certificate', certificate, '--media-folder', join(folder, 'media')]
    const { url, http } = await startProgram(...options)
    const program = spawn('node', [PROGRAM, url, '15005550005@s.whatsapp.net'], {
      env: { ...process.env, NODE_EXTRA_CA_CERTS: certificate },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    onTestFinished(() => void program.kill('SIGKILL'))
    let printed = ''
    program.stdout!.on('data', chunk => (printed += chunk))
    const [, qr = ''] = await until(() => /"qr":"([^"]+)"/.exec(printed), 'a QR code')
    const { body: scanned } = await call(`${http}/admin/mock-phone/scan-qr`, 'POST', qr)
    const to = scanned['phone']
    await until(() => printed.includes(sha256(Buffer.from('contents'))), 'the echo')

    const from = '5511999990001'
    const media = { type: 'voice', base64: Buffer.from('a voice').toString('base64'), seconds: 2 }
    expect((await call(`${http}/admin/messages`, 'POST', { from, to, media })).status).toBe(200)
    await until(() => printed.includes(sha256(Buffer.from('a voice'))), 'the voice message')
    const random = { type: 'image', size: 3_000_000 }
    const { body: written } = await call(`${http}/admin/messages`, 'POST', { from, to, media: random })
    const { body: inbox } = await call(`${http}/admin/phones/${to}/messages`)
    const [image] = (inbox['messages'] as unknown as ReceivedMessage[]).filter(({ id }) => id === written['id'])
    expect(image?.media).toMatchObject({ type: 'image', mimetype: 'image/jpeg', size: 3_000_000 })
    await until(() => printed.includes(image!.media!.sha256), 'the image')
    for (const wrong of [{ type: 'image' }, { type: 'image', path: CLI }, { type: 'text', size: 1 }, 'x', null]) {
      expect((await call(`${http}/admin/messages`, 'POST', { from, to, media: wrong })).status).toBe(400)
    }
    expect((await call(`${http}/admin/messages`, 'POST', { from, to, media, text: 'x' })).status).toBe(400)
  })

  it('accepts orders to misbehave over HTTP', async () => {
    const { url, http } = await startProgram('--claimed-pre-keys', '500')
    const client = startClient(url)
    await call(`${http}/admin/mock-phone/scan-qr`, 'POST', await until(() => client.seen.qrs[0]))
    await until(() => client.isOpen)
    const scenario = `${http}/admin/scenario`
    const rule = { when: { stanza: 'message', direction: 'out' }, do: 'hold' }
    expect(await call(scenario, 'POST', { kind: 'rule', rule })).toEqual({ status: 200, body: { rule: 1 } })
    const text = { kind: 'write', from: '5511999990001', to: client.phone, text: 'text', count: 2 }
    expect((await call(scenario, 'POST', text)).status).toBe(200)
    await until(async () => (await call(scenario)).body['held']?.['length'] === 2, 'both to be held')
    expect((await call(scenario)).body).toMatchObject({ seed: 1, rules: [{ id: 1, rule, fitted: 2, applied: 2 }] })
    expect((await call(scenario, 'POST', { kind: 'release', count: 1 })).body).toEqual({ released: 1 })
    await until(() => client.texts().length === 1)
    expect(client.texts()).toEqual(['text 1'])
    expect((await call(scenario, 'POST', { kind: 'clear' })).body).toEqual({})
    await until(() => client.texts().length === 2)
    await call(scenario, 'POST', { kind: 'stream_error', account: client.phone, code: '503' })
    await until(() => client.seen.closes.includes(503))
    expect((await call(scenario, 'POST', { kind: 'nonsense' })).status).toBe(400)
    expect((await call(scenario, 'POST', { kind: 'cut', account: '5511999990001' })).status).toBe(404)
  })

  it('reports why it cannot start', async () => {
    const { url } = await startProgram()
    for (const args of [['--port', new URL(url).port], ['--port', 'x'], ['--nonsense']]) {
      const program = spawn('node', [CLI, ...args], { stdio: ['ignore', 'ignore', 'pipe'] })
      let printed = ''
      program.stderr.on('data', chunk => (printed += chunk))
      expect(await once(program, 'close')).toEqual([1, null])
      expect(printed).toContain('usage:')
      expect(printed).not.toContain('    at ')
    }
  })

  it('answers bad requests with 4xx, and keeps serving after hostile clients', async () => {
    const { url, http, program } = await startProgram()
    const expectError = async (path: string, method: string, body: unknown, status: number) => {
      const answer = await call(`${http}${path}`, method, method === 'GET' ? undefined : body)
      expect(answer).toMatchObject({
        status,
        body: { error: { code: expect.any(String), message: expect.any(String) } },
      })
    }
    await expectError('/admin/mock-phone/scan-qr', 'POST', 'nonsense', 404)
    await expectError('/admin/mock-phone/scan-qr', 'GET', '', 405)
    await expectError('/admin/messages', 'POST', '{', 400)
    await expectError('/admin/messages', 'POST', '[]', 400)
    await expectError('/admin/messages', 'POST', { from: 1 }, 400)
    await expectError('/admin/messages', 'POST', { from: '55119999', to: '5511999990001', text: 'x' }, 404)
    await expectError('/admin/messages', 'POST', 'x'.repeat(33 * 1024 * 1024), 413)
    await expectError('/admin/mock-phone/unlink', 'POST', { phone: '5511999990001' }, 404)
    await expectError('/admin/groups/120363000000000001@g.us/members', 'POST', { members: [] }, 400)
    await expectError('/admin/groups/1-2@g.us/members', 'POST', { members: 'x' }, 400)
    await expectError('//', 'GET', undefined, 404)
    for (const garbage of [
      '',
      'GET / HTTP/1.1',
      '\u0057A\u0006\u0003',
      '\u0057A\u0006\u0003\0\0\u0005hello',
      'ED\0\u0001',
    ]) {
      const socket = new WebSocket(url)
      await once(socket, 'open')
      socket.send(Buffer.from(garbage, 'latin1'))
      socket.send(Buffer.alloc(100_000, 0xff))
      await once(socket, 'close')
    }
    expect(program.exitCode).toBe(null)
    expect((await call(`${http}/admin/accounts`)).status).toBe(200)
    program.kill('SIGINT')
    expect(await once(program, 'exit')).toEqual([0, null])
  })
})
