/**
 * `npm run simulator -- --tls` and a program on unmodified Baileys with its default options: it sets only the URL and its storage,
 * and trusts the certificate that the simulator has written.
 */
import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { MEDIA_TYPES, type MediaType, type ReceivedMessage } from '@pombal/simulator'
import { expect, it, onTestFinished } from 'vitest'
import { Program } from '../program.ts'
import { temporaryFolder } from '../temporary-folder.ts'
import { until } from '../wait.ts'
import { contents, descriptions, download, files, sha256, trust } from './media-world.ts'

const POMBAL = fileURLToPath(new URL('../../../bin/pombal.js', import.meta.url))
const CONTACT = '5511999990001'
const TO = `${CONTACT}@s.whatsapp.net`

async function start() {
  const folder = await temporaryFolder()
  const certificate = join(folder, 'ca.pem')
  const args = [
    'simulator',
    '--tls',
    '--port',
    '0',
    '--certificate',
    certificate,
    '--media-folder',
    join(folder, 'media'),
  ]
  const child = spawn('node', [POMBAL, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  let printed = ''
  child.stdout.on('data', chunk => (printed += chunk))
  const [url] = await until(() => /wss:\S+/.exec(printed), 'the line with the URL')
  trust({ hosts: [], certificate: await readFile(certificate, 'utf8') })
  const http = url.replace('wss:', 'https:').replace('/ws/chat', '')

  const program = new Program(url)
  onTestFinished(() => program.sock.end(undefined))
  await until(() => program.qr !== '', 'a QR code')
  await call(`${http}/admin/mock-phone/scan-qr`, program.qr)
  await until(() => program.isOpen, 'the login')
  const inbox = async () => (await call(`${http}/admin/phones/${CONTACT}/messages`))['messages'] as ReceivedMessage[]
  const write = (message: object) =>
    call(`${http}/admin/messages`, JSON.stringify({ from: CONTACT, to: program.number, ...message }))
  return { program, inbox, write }
}

async function call(url: string, body?: string): Promise<Record<string, unknown>> {
  const response = await fetch(url, { ...(body !== undefined && { method: 'POST', body }) })
  expect(response.status).toBe(200)
  return (await response.json()) as Record<string, unknown>
}

const expected = (type: MediaType) => ({
  type,
  ...descriptions[type],
  size: files[type].length,
  sha256: sha256(files[type]),
})

it('a program with the default options exchanges files of every type, by number, by LID and quoted', async () => {
  const { program, inbox, write } = await start()
  const send = async (to: string, type: MediaType, options = {}) => {
    const { key } = (await program.sock.sendMessage(to, contents[type], options))!
    return until(async () => (await inbox()).find(({ id }) => id === key.id), `the ${type} on the phone`)
  }
  const receive = async (message: object) => {
    const { id } = await write(message)
    return program.received(({ key }) => key.id === id, 'the message of the contact')
  }

  for (const type of MEDIA_TYPES) {
    expect((await send(TO, type)).media).toEqual(expected(type))
    const media = { type, base64: files[type].toString('base64') }
    const message = await receive({ media })
    expect(await download(message)).toEqual(files[type])

    expect(message.key.remoteJid).toMatch(/@lid$/)
    const answer = await send(message.key.remoteJid!, type, { quoted: message })
    expect(answer).toMatchObject({ quoted: message.key.id, media: expected(type) })
    const thanks = await receive({ text: 'thanks', quote: answer.id })
    const quotedMessage = thanks.message!.extendedTextMessage!.contextInfo!.quotedMessage!
    expect(await download({ key: {}, message: quotedMessage })).toEqual(files[type])
  }
  expect(program.closes).toEqual([515])
})
