/** Raw answers of hosts that files are fetched from: the message gets the file as HTTP defines it, or it fails. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { LinkedHarness, type LinkedNumber } from '../../linked-harness.ts'
import { until } from '../../until.ts'
import { sha256 } from './harness.ts'
import { newContact } from './receiving-harness.ts'
import { sampleFile } from './sample-files.ts'

const { bytes: FILE } = sampleFile('document', 5_000)
const HEADERS_MAX = 40_000

const answers = new Map<string, (socket: Socket) => void>()
let server: Server
let harness: LinkedHarness
let number: LinkedNumber

beforeAll(async () => {
  server = createServer(socket => {
    socket.on('error', () => undefined)
    socket.once('data', request => {
      const [, path = ''] = /^GET (\S+)/.exec(request.toString('latin1')) ?? []
      answers.get(path)?.(socket)
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const env = { MEDIA_ALLOWED_NETWORKS: `127.0.0.1:${portOf(server)}`, MEDIA_QUOTA_MB: '1' }
  harness = await LinkedHarness.open('sqlite', { env })
  number = await harness.link()
})
afterAll(async () => {
  await harness?.[Symbol.asyncDispose]()
  server?.close()
})

function portOf(listening: Server): number {
  return (listening.address() as AddressInfo).port
}

function chunked(bytes: Uint8Array, extension = '', size = 1_000): Buffer {
  const parts: (string | Uint8Array)[] = []
  for (let from = 0; from < bytes.length; from += size) {
    const part = bytes.subarray(from, from + size)
    parts.push(`${part.length.toString(16)}${extension}\r\n`, part, '\r\n')
  }
  return Buffer.concat([...parts, '0\r\n\r\n'].map(part => (typeof part === 'string' ? Buffer.from(part) : part)))
}

/** An answer from its header lines and its body. The host closes the connection after it. */
const plain =
  (lines: readonly string[], body: Uint8Array, version = '1.1') =>
  (socket: Socket) => {
    socket.write(`HTTP/${version} 200 OK\r\n${lines.map(line => `${line}\r\n`).join('')}\r\n`)
    socket.end(body)
  }

/** Ends when the reader does. */
const forever = (start: string, more: string) => (socket: Socket) => {
  socket.write(start)
  const timer = setInterval(() => socket.write(more), 1)
  socket.once('close', () => clearInterval(timer))
}

async function fetched(name: string, answer: (socket: Socket) => void) {
  const [path, to] = [`/${encodeURIComponent(name)}`, newContact()]
  answers.set(path, answer)
  const url = `http://127.0.0.1:${portOf(server)}${path}`
  const { id } = await number.instance.sendMedia({ to, media: { url }, as: 'document' }, encodeURIComponent(name))
  const { error } = await until(`${id} to be read or failed`, async () => {
    const found = await number.instance.message(id)
    return ['read', 'failed'].includes(found.status) && found
  })
  return {
    error: error?.code,
    message: error?.message,
    shown: (await harness.network.inbox(to)).map(({ media }) => media?.sha256),
  }
}

test.each([
  ['a body that ends with the connection', plain([], FILE, '1.0')],
  ['a body in chunks with extensions', plain(['Transfer-Encoding: chunked'], chunked(FILE, ';a=b'))],
  ['a body in 834 small chunks', plain(['Transfer-Encoding: chunked'], chunked(FILE, '', 6))],
  ['bytes after the declared length', plain([`Content-Length: ${FILE.length}`], Buffer.concat([FILE, FILE]))],
])('%s is the file', async (name, answer) => {
  expect(await fetched(name, answer)).toMatchObject({ error: undefined, shown: [sha256(FILE)] })
})

test.each([
  ['a packed body', plain(['Content-Encoding: br', `Content-Length: ${FILE.length}`], FILE)],
  ['two encodings', plain(['Content-Encoding: identity', 'Content-Encoding: gzip'], gzipSync(FILE))],
  ['a packed transfer', plain(['Transfer-Encoding: gzip, chunked'], chunked(gzipSync(FILE)))],
  ['a packed transfer in two lines', plain(['Transfer-Encoding: gzip', 'Transfer-Encoding: chunked'], chunked(FILE))],
])('%s fails the message: nobody is sent a file that is packed', async (name, answer) => {
  expect(await fetched(name, answer)).toMatchObject({ error: 'media_unavailable', shown: [] })
})

test('a file in thousands of chunks of a few bytes fails the message', async () => {
  const answer = plain(['Transfer-Encoding: chunked'], chunked(FILE, '', 2))
  expect(await fetched('tiny chunks', answer)).toMatchObject({ error: 'media_unavailable', shown: [] })
})

test('a file for which there is no space fails the message with this reason', async () => {
  const answer = plain(['Content-Length: 1100000'], Buffer.alloc(1_100_000))
  expect(await fetched('a large file', answer)).toMatchObject({
    error: 'media_unavailable',
    message: expect.stringContaining('MEDIA_QUOTA_MB'),
    shown: [],
  })
})

test('the service closes the connection of an answer that never becomes a file, and continues to work', async () => {
  const before = harness.service.pid
  const starts = [
    ['HTTP/1.1 200 OK\r\n', 'X-More: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n'.repeat(20)],
    ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n', `X-More: ${'a'.repeat(900)}\r\n`],
    ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;', 'a'.repeat(900)],
    ['', 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(50)],
  ] as const
  let closed = 0
  let sent = 0
  for (const [n, [start, more]] of starts.entries()) {
    const path = `/forever-${n}`
    answers.set(path, socket => {
      socket.once('close', () => {
        closed += 1
        sent = Math.max(sent, socket.bytesWritten)
      })
      forever(start, more)(socket)
    })
    const url = `http://127.0.0.1:${portOf(server)}${path}`
    await number.instance.sendMedia({ to: newContact(), media: { url }, as: 'document' }, path)
  }
  await until('the service to close all of them', () => closed >= starts.length)
  expect(sent).toBeLessThan(50 * HEADERS_MAX)
  await harness.sendAndRead(number, newContact())
  expect(harness.service.pid).toBe(before)
})

test('a message that is cancelled while its file is fetched shows it as failed, and the fetch ends', async () => {
  let connection: Socket | null = null
  answers.set('/cancelled', socket => {
    connection = socket
    forever('HTTP/1.1 200 OK\r\n\r\n', 'a'.repeat(70))(socket)
  })
  const url = `http://127.0.0.1:${portOf(server)}/cancelled`
  const { id } = await number.instance.sendMedia({ to: newContact(), media: { url }, as: 'document' }, 'cancelled')
  const socket = await until('the fetch to begin', () => connection)
  expect(await number.instance.message(id)).toMatchObject({ status: 'queued', media: { status: 'pending' } })
  const headers = { authorization: `Bearer ${number.instance.token}` }
  expect((await fetch(`${harness.service.url}/v1/messages/${id}`, { method: 'DELETE', headers })).ok).toBe(true)
  const shown = await until('the end of the message', async () => {
    const found = await number.instance.message(id)
    return found.status === 'failed' && found
  })
  expect(shown).toMatchObject({ error: { code: 'cancelled' }, media: { status: 'failed' } })
  await until('the end of the fetch', () => socket.closed)
})
