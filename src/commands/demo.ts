import { spawn } from 'node:child_process'
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** `pombal demo`, started by `bin/pombal.js`: sends and receives through a sandbox instance, then exits; with 1 if an event is missing or wrong. */

/** Long enough for a slow machine. */
const GIVE_UP_AFTER_MS = 150_000
const SHOWN_TEXT_LENGTH = 40

interface PostedEvent {
  event: string
  data: {
    id: string
    to?: string
    from?: string
    text?: string
    group?: string
    media?: { sha256: string }
    error?: { code: string }
  }
}

/** The messages to send, and the events that must follow in this order. */
const PLAN = [
  { to: '5511987654321', text: 'Your order is on its way 🚚', expected: ['sent', 'delivered', 'read'] },
  { to: '15005550005', text: 'Echo, are you there?', expected: ['sent', 'delivered', 'read'] },
  { to: '120363000000000042@g.us', text: 'Hello, everybody', expected: ['sent', 'delivered', 'read'] },
  { to: '15005550001', text: 'To a number that is not on WhatsApp', expected: ['failed'] },
]
/** A picture of one pixel, which 15005550005 sends back. */
const PICTURE = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)
const PICTURE_SHA256 = createHash('sha256').update(PICTURE).digest('hex')
const REPLY = 'Echo, are you there?'

/** The variables that the demo's service gets. No setting is among them: it could name a production database. */
const PASSED_ON = ['PATH', 'HOME', 'TMPDIR', 'TEMP', 'TMP', 'LANG', 'NODE_OPTIONS', 'NODE_COMPILE_CACHE', 'SystemRoot']

/** Ends the demo early. The service is then stopped, and the folder erased. */
const interrupted = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(signal, () => interrupted.abort(new Error(`Ended by ${signal}.`)))
// Nobody reads the output any more, for example after `| head`.
process.stdout.on('error', error => interrupted.abort(error))

const startedAt = performance.now()
const dataDir = mkdtempSync(join(tmpdir(), 'pombal-demo-'))
const events: PostedEvent[] = []
let badSignatures = 0
let secret = ''

function say(line: string): void {
  process.stdout.write(`${((performance.now() - startedAt) / 1000).toFixed(2).padStart(6)} s  ${line}\n`)
}

async function until<T>(what: string, check: () => Promise<T | false> | T | false): Promise<T> {
  while (performance.now() - startedAt < GIVE_UP_AFTER_MS) {
    interrupted.signal.throwIfAborted()
    const end = service.signalCode ?? service.exitCode
    if (end !== null) throw new Error(`The service ended (${end}).\n${output()}`)
    const found = await check()
    if (found !== false) return found
    await sleep(50)
  }
  throw new Error(`Gave up waiting for ${what}.`)
}

async function call(method: string, url: string, key: string, body?: object): Promise<Record<string, unknown>> {
  const response = await fetch(url, {
    method,
    signal: interrupted.signal,
    headers: { authorization: `Bearer ${key}`, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  })
  const answer = (await response.json()) as { data: Record<string, unknown> }
  if (!response.ok) throw new Error(`${method} ${url} answered ${response.status}: ${JSON.stringify(answer)}`)
  return answer.data
}

function isSigned(body: Buffer, signature: string | undefined): boolean {
  const expected = Buffer.from(`sha256=${createHmac('sha256', secret).update(body).digest('hex')}`)
  const given = Buffer.from(signature ?? '')
  return given.length === expected.length && timingSafeEqual(given, expected)
}

function show(event: PostedEvent, signed: boolean): void {
  const { data } = event
  const who = data.group ? `${data.group} (${data.from})` : (data.from ?? data.to)
  const what = (data.media && 'a picture') ?? data.text ?? data.error?.code ?? data.id
  say(
    `  ${event.event.padEnd(18)} ${String(who).padEnd(26)} ${what.slice(0, SHOWN_TEXT_LENGTH)}  ${signed ? '✓ signed' : '✗ BAD SIGNATURE'}`,
  )
}

const receiver = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', chunk => chunks.push(chunk))
  request.on('end', () => {
    const body = Buffer.concat(chunks)
    const signed = isSigned(body, request.headers['x-service-signature'] as string | undefined)
    if (!signed) badSignatures += 1
    const event: PostedEvent = JSON.parse(body.toString())
    events.push(event)
    show(event, signed)
    response.end()
  })
})

function startService() {
  const service = spawn(process.execPath, [process.argv[1] ?? ''], {
    env: {
      ...Object.fromEntries(PASSED_ON.map(name => [name, process.env[name]])),
      DATA_DIR: dataDir,
      PORT: '0',
      HOST: '127.0.0.1',
      LOG_LEVEL: 'warn',
      SANDBOX: 'on',
      NODE_ENV: 'development',
    },
    stdio: ['ignore', 'inherit', 'pipe'],
  })
  let output = ''
  service.stderr.on('data', chunk => {
    output += chunk
  })
  return { service, url: () => /listens on (\S+)/.exec(output)?.[1] ?? false, output: () => output }
}

function eventsOf(id: string): string[] {
  return events.filter(event => event.data.id === id).map(event => event.event.replace('message.', ''))
}

async function sendPicture(url: string, token: string): Promise<string> {
  const response = await fetch(`${url}/v1/media?filename=pixel.png`, {
    method: 'POST',
    signal: interrupted.signal,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'image/png' },
    body: PICTURE,
  })
  if (!response.ok) throw new Error(`The upload was answered with ${response.status}: ${await response.text()}`)
  const { data } = (await response.json()) as { data: { id: string } }
  const { id } = await call('POST', `${url}/v1/messages/media`, token, { to: '15005550005', media: data.id })
  return String(id)
}

async function run(url: string): Promise<void> {
  const adminKey = readFileSync(join(dataDir, 'admin.key'), 'utf8').trim()
  const instance = await call('POST', `${url}/admin/v1/instances`, adminKey, { name: 'demo', kind: 'sandbox' })
  const token = String(instance['token'])
  say(`Instance ${instance['id']} created; its simulated phone scans the QR code by itself`)
  await until('the instance to connect', async () => {
    const connection = await call('GET', `${url}/admin/v1/instances/${instance['id']}/connection`, adminKey)
    return connection['state'] === 'connected'
  })
  say('Connected')

  await new Promise<void>(resolve => receiver.listen(0, '127.0.0.1', resolve))
  const webhookUrl = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/events`
  secret = String((await call('PUT', `${url}/v1/webhooks/${instance['id']}`, token, { url: webhookUrl }))['secret'])
  say(`Webhook set to ${webhookUrl}; sending ${PLAN.length} texts and a picture`)

  const sent = await Promise.all(
    PLAN.map(async ({ to, text, expected }) => {
      const { id } = await call('POST', `${url}/v1/messages/text`, token, { to, text })
      return { id: String(id), expected }
    }),
  )
  sent.push({ id: await sendPicture(url, token), expected: ['sent', 'delivered', 'read'] })
  const hasEcho = () => events.some(({ data }) => data.media?.sha256 === PICTURE_SHA256)
  await until('every event', () => {
    const all = sent.every(({ id, expected }) => eventsOf(id).length >= expected.length)
    return all && hasEcho() && events.some(event => event.data.text === REPLY)
  })
  for (const { id, expected } of sent) {
    if (eventsOf(id).join() !== expected.join())
      throw new Error(`The events of ${id} were ${eventsOf(id)}, not ${expected}.`)
  }
  if (!events.some(event => event.data.from === '15005550005' && event.data.text === REPLY))
    throw new Error('No reply arrived.')
  if (badSignatures > 0) throw new Error(`${badSignatures} signatures were wrong.`)
}

const { service, url, output } = startService()
try {
  say(`Starting Pombal on an empty folder, ${dataDir}`)
  const at = await until('the service to start', url)
  say(`Pombal listens on ${at}`)
  await run(at)
  say(`All ${events.length} events arrived, in order and signed.`)
} catch (error) {
  say(`FAILED: ${(error as Error).message}`)
  process.exitCode = 1
} finally {
  receiver.close()
  receiver.closeAllConnections()
  if (service.exitCode === null && service.signalCode === null) {
    const ended = new Promise(resolve => service.once('exit', resolve))
    service.kill('SIGTERM')
    await ended
  }
  rmSync(dataDir, { recursive: true, force: true })
}
