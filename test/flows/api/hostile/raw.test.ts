import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CONDITION_WITHIN_MS } from '../../../deadlines.ts'
import { until } from '../../../until.ts'
import { ApiHarness, type Created } from '../harness.ts'

let api: ApiHarness
let instance: Created

beforeAll(async () => {
  api = await ApiHarness.start()
  instance = await api.createConnected()
})
afterAll(() => api[Symbol.asyncDispose]())

interface RawAnswer {
  status: number
  headers: string
  body: string
}

/** Sends the bytes unchanged, and reads until an answer is complete or the server closes the connection. */
function raw(...chunks: (string | Buffer)[]): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const socket = connect(api.port, '127.0.0.1')
    let received = ''
    const finish = () => {
      socket.destroy()
      resolve(parse(received))
    }
    socket.setTimeout(CONDITION_WITHIN_MS, () => {
      socket.destroy()
      reject(new Error(`No answer in time; received ${JSON.stringify(received)}`))
    })
    socket.setEncoding('latin1').on('data', text => {
      received += text
      received = received.replace('HTTP/1.1 100 Continue\r\n\r\n', '')
      const { headers, body } = parse(received)
      const length = /content-length: (\d+)/i.exec(headers)?.[1]
      if (length !== undefined && body.length >= Number(length)) finish()
    })
    socket.on('close', finish)
    socket.on('error', () => undefined)
    for (const chunk of chunks) socket.write(chunk)
  })
}

function parse(received: string): RawAnswer {
  const [head = '', ...rest] = received.split('\r\n\r\n')
  return { status: Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1] ?? 0), headers: head, body: rest.join('\r\n\r\n') }
}

function post(body: string | Buffer, headers: readonly string[] = []): Promise<RawAnswer> {
  const lines = [
    'POST /v1/messages/text HTTP/1.1',
    'Host: localhost',
    `Authorization: Bearer ${instance.token}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...headers,
  ]
  return raw(`${lines.join('\r\n')}\r\n\r\n`, body)
}

function expectError(answer: RawAnswer, status: number, code: string): void {
  expect(answer.status).toBe(status)
  expect(answer.headers.toLowerCase()).toContain('content-type: application/json; charset=utf-8')
  expect(answer.headers.toLowerCase()).toMatch(/x-request-id: \S+/)
  expect(JSON.parse(answer.body)).toMatchObject({ error: { code, message: expect.any(String) } })
}

const GOOD = '{"to":"5511987654321","text":"x"}'

describe('bytes that are not HTTP get 400 in the envelope', () => {
  test.each([
    ['noise', '\u0000\u0001\u0002 nonsense\r\n\r\n'],
    ['a broken request line', 'GET\r\n\r\n'],
    ['an unknown method', 'FOO / HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['an unknown version', 'GET / HTTP/9.9\r\nHost: x\r\n\r\n'],
    ['space in the path', 'GET /a b HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['a header without a name', 'GET / HTTP/1.1\r\nHost: x\r\n: y\r\n\r\n'],
    ['a header with U+0000', 'GET / HTTP/1.1\r\nHost: x\r\nA: \u0000\r\n\r\n'],
    ['a bad length', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n'],
    ['two lengths', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx'],
    [
      'a length and chunks',
      'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    ['TLS', Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03])],
    ['a missing Host', 'GET /healthz HTTP/1.1\r\n\r\n'],
    ['two Host headers', 'GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n'],
    ['the same Host twice', 'GET /healthz HTTP/1.1\r\nHost: x\r\nHOST: x\r\n\r\n'],
    ['two Host headers of HTTP/1.0', 'GET /healthz HTTP/1.0\r\nHost: x\r\nHost: y\r\n\r\n'],
    ['a malformed Host', 'GET /docs/ HTTP/1.1\r\nHost: [[\r\n\r\n'],
    ['a Host with a port out of range', 'GET /docs/ HTTP/1.1\r\nHost: x:99999\r\n\r\n'],
  ])('%s', async (_what, bytes) => {
    expectError(await raw(bytes), 400, 'invalid_request')
  })

  test('headers larger than the server reads get 431', async () => {
    expectError(await raw(`GET / HTTP/1.1\r\nHost: x\r\nA: ${'x'.repeat(100_000)}\r\n\r\n`), 431, 'headers_too_large')
  })

  test('bad chunks in a body get 400', async () => {
    const head =
      `POST /v1/messages/text HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${instance.token}\r\n` +
      'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n'
    expectError(await raw(`${head}zz\r\n`), 400, 'invalid_request')
  })

  test('CONNECT gets 405', async () => {
    expectError(
      await raw('CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n'),
      405,
      'method_not_allowed',
    )
  })
})

describe('unusual but valid requests', () => {
  test('HTTP/1.0 needs no Host', async () => {
    expect((await raw('GET /healthz HTTP/1.0\r\n\r\n')).status).toBe(200)
    expect((await raw('GET /docs/ HTTP/1.0\r\n\r\n')).status).toBe(200)
    expect((await raw('GET /docs HTTP/1.0\r\n\r\n')).status).toBe(301)
  })

  test('the absolute form and the asterisk form are understood', async () => {
    expect((await raw('GET http://other.example/healthz HTTP/1.1\r\nHost: x\r\n\r\n')).status).toBe(200)
    expect((await raw('GET http://other.example HTTP/1.1\r\nHost: x\r\n\r\n')).status).toBe(302)
    expect((await raw('GET http://x:99999999/docs HTTP/1.1\r\nHost: x\r\n\r\n')).status).toBe(301)
    expectError(await raw('OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n'), 404, 'not_found')
  })

  test('a chunked body is read', async () => {
    const answer = await raw(
      `POST /v1/messages/text HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${instance.token}\r\n`,
      'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n',
      `${GOOD.length.toString(16)}\r\n${GOOD}\r\n0\r\n\r\n`,
    )
    expect(answer.status).toBe(202)
  })

  test('an endless chunked body gets 413', async () => {
    const chunk = 'x'.repeat(65_536)
    const answer = await raw(
      `POST /v1/messages/text HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${instance.token}\r\n`,
      'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n',
      `${chunk.length.toString(16)}\r\n${chunk}\r\n`.repeat(20),
    )
    expectError(answer, 413, 'payload_too_large')
  })

  test('a body in a thousand chunks of one byte is read, and one in many more gets 413', async () => {
    const head =
      `POST /v1/messages/text HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${instance.token}\r\n` +
      'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n'
    const chunks = (text: string) => [...text].map(character => `1\r\n${character}\r\n`).join('')
    expect((await raw(head, chunks(GOOD.padEnd(1_000)), '0\r\n\r\n')).status).toBe(202)
    const answer = await raw(head, chunks(GOOD.padEnd(50_000)))
    expectError(answer, 413, 'payload_too_large')
    expect(answer.body).toContain('too many small chunks')
  })

  test('the next request on the connection of a body in too many chunks is answered, however long it takes', async () => {
    const socket = connect(api.port, '127.0.0.1')
    const chunks = [...GOOD.padEnd(1_500)].map(character => `1\r\n${character}\r\n`).join('')
    const head = `HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${instance.token}\r\n`
    let said = ''
    socket.setEncoding('utf8').on('data', text => (said += text))
    socket.write(`POST /v1/messages/text ${head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`)
    socket.write(`${chunks}0\r\n\r\n`)
    await until('413', () => said.includes('HTTP/1.1 413'))
    socket.write(`GET /v1/events?wait=3 ${head}\r\n`)
    await until('the answer to the next request', () => said.includes('HTTP/1.1 200'))
    socket.destroy()
  })

  test('a length over the limit gets 413 before any of the body has arrived', async () => {
    const answer = await raw(
      `POST /v1/messages/text HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${instance.token}\r\n`,
      'Content-Type: application/json\r\nContent-Length: 1000000000\r\n\r\n',
    )
    expectError(answer, 413, 'payload_too_large')
  })

  test('a known Expect is honoured, and an unknown one is ignored', async () => {
    expect((await post(GOOD, ['Expect: 100-continue'])).status).toBe(202)
    expect((await post(GOOD, ['Expect: a-miracle'])).status).toBe(202)
  })

  test('an unsupported upgrade is ignored', async () => {
    const answer = await raw('GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
    expect(answer.status).toBe(200)
  })

  test('two Authorization headers: the first counts', async () => {
    const two = `Authorization: Bearer ${instance.token}\r\nAuthorization: Bearer other\r\n`
    expect((await raw(`GET /v1/instance HTTP/1.1\r\nHost: x\r\n${two}\r\n`)).status).toBe(200)
  })

  test('two idempotency keys get 400', async () => {
    expectError(await post(GOOD, ['X-Idempotency-Key: a', 'X-Idempotency-Key: b']), 400, 'invalid_request')
  })

  test('two request IDs count as none', async () => {
    const answer = await raw('GET /healthz HTTP/1.1\r\nHost: x\r\nX-Request-Id: a\r\nX-Request-Id: b\r\n\r\n')
    expect(answer.headers.toLowerCase()).toMatch(/x-request-id: req_/)
  })

  test('an answer to HEAD never has a body, not even an error', async () => {
    const answer = await raw('HEAD /nope HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
    expect([answer.status, answer.body]).toEqual([404, ''])
  })
})

describe('bodies', () => {
  test.each([
    [
      'a lone continuation byte',
      Buffer.concat([Buffer.from('{"to":"5511987654321","text":"'), Buffer.from([0x80]), Buffer.from('"}')]),
    ],
    [
      'an overlong form',
      Buffer.concat([Buffer.from('{"to":"5511987654321","text":"'), Buffer.from([0xc0, 0xaf]), Buffer.from('"}')]),
    ],
    ['UTF-16', Buffer.from(GOOD, 'utf16le')],
    ['a byte order mark', Buffer.from(`\ufeff${GOOD}`)],
    ['half a character', Buffer.from(GOOD).subarray(0, -3)],
  ])('%s gets 400', async (_what, body) => {
    expectError(await post(body), 400, 'invalid_request')
  })

  test('100,000 levels of nesting do no harm', async () => {
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
    expectError(await post(deep), 400, 'invalid_request')
    expect((await post(`{"to":"5511987654321","text":"x","more":${deep}}`)).status).toBe(202)
    const refused = await post(`{"to":"5511987654321","text":"x","metadata":{"a":${deep}}}`)
    expectError(refused, 400, 'invalid_request')
    expect(JSON.parse(refused.body).error.details).toMatchObject([{ field: 'metadata' }])
    expectError(await post('{"a":'.repeat(100_000)), 400, 'invalid_request')
  })

  test('huge numbers do no harm', async () => {
    expectError(await post(`{"to":1e999999,"text":${'9'.repeat(10_000)}}`), 400, 'invalid_request')
    expect((await post(`{"to":"5511987654321","text":"x","n":-1e999}`)).status).toBe(202)
  })

  test('a body that never reaches its Content-Length ends with the connection', async () => {
    const socket = connect(api.port, '127.0.0.1')
    socket.on('error', () => undefined)
    socket.write(
      `POST /v1/messages/text HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${instance.token}\r\n` +
        'Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"to":',
    )
    // When this call is answered, the server has read the incomplete request.
    expect((await api.call({ path: '/healthz' })).status).toBe(200)
    socket.destroy()
    expect((await raw('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')).status).toBe(200)
  })

  test('a connection still works after a refused request with a body', async () => {
    const refused =
      'POST /v1/messages/text HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n' +
      `Content-Length: ${GOOD.length}\r\n\r\n${GOOD}`
    const socket = connect(api.port, '127.0.0.1')
    let received = ''
    socket.setEncoding('latin1').on('data', text => {
      received += text
    })
    socket.write(`${refused}GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    await new Promise(resolve => socket.once('close', resolve))
    expect([...received.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual(['401', '200'])
  })
})
