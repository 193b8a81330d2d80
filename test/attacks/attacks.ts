import { randomBytes } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** The attacked service. */
export interface Target {
  port: number
  /** The value of `METRICS_PORT`, if set. */
  metricsPort?: number
  keys?: AttackKeys
}

/** The keys, the session and the link of the attacks that need one. */
export interface AttackKeys {
  /** A list of large events, and the admin key. */
  list: { path: string; key: string }
  /** The token of another instance. */
  token: string
  /** The cookie of a viewer's session. */
  session: string
  /** The token of a linking link. */
  link: string
}

/** Starts the attack, which continues until the process is killed. Resolves once it has started. */
export type Attack = (target: Target) => Promise<void>

/** The pauses before the next request or connection: the harm should come from each request, not from their number. */
const PAUSE_MS = 100
const RECONNECT_MS = 500
const DRIP_MS = 1_000
const JSON_TYPE = 'Content-Type: application/json\r\n'
const JSON_BODY = { 'content-type': 'application/json' }
const SIGN_IN = `POST /admin/v1/session HTTP/1.1\r\nHost: x\r\n${JSON_TYPE}`
const MIB = 1_048_576

/** Calls that accept a body. They are sent with an unknown token. */
const BODY_TARGETS = [
  'POST /admin/v1/session',
  'POST /v1/messages/text',
  'PUT /v1/webhooks/inst_000000000000',
  'POST /admin/v1/instances',
  'PUT /admin/v1/password',
  'POST /nope',
]

/** Keeps one connection open: when it is closed, opens the next one. Reads no response. */
function keepOpen({ port }: { port: number }, begin: (socket: Socket) => void, localAddress?: string): void {
  const socket = connect({ port, host: '127.0.0.1', ...(localAddress !== undefined && { localAddress }) })
  socket.on('error', () => undefined)
  socket.on('connect', () => begin(socket.pause()))
  // A paused socket does not notice that the other side has closed it until it writes.
  socket.on('close', () => setTimeout(keepOpen, RECONNECT_MS, { port }, begin, localAddress))
}

function keysOf({ keys }: Target): AttackKeys {
  if (keys === undefined) throw new Error('This attack needs KEYS.')
  return keys
}

function times(count: number, act: (index: number) => void): void {
  for (let index = 0; index < count; index += 1) act(index)
}

/** Pipelined requests, at least `bytes` long. */
function pipelined(requests: readonly string[], bytes: number): Buffer {
  const block = requests.map(line => `${line} HTTP/1.1\r\nHost:x\r\n\r\n`).join('')
  return Buffer.from(block.repeat(Math.ceil(bytes / block.length)))
}

function writeForever(socket: Socket, bytes: Buffer): void {
  const write = () => {
    while (!socket.destroyed && socket.write(bytes)) if (socket.writableLength > 0) return
  }
  socket.on('drain', () => setTimeout(write, PAUSE_MS))
  socket.write(bytes)
}

function drip(socket: Socket, byte: string): void {
  const timer = setInterval(() => socket.write(byte), DRIP_MS)
  socket.once('close', () => clearInterval(timer))
}

/** Repeats a request on one connection and reads the responses. */
function requestForever(target: Target, request: () => string, localAddress?: string): void {
  keepOpen(
    target,
    socket => {
      // A response may arrive in several chunks.
      let isAnswered = false
      socket.on('data', () => {
        if (isAnswered) return
        isAnswered = true
        setTimeout(() => {
          isAnswered = false
          socket.write(request())
        }, PAUSE_MS)
      })
      socket.resume()
      socket.write(request())
    },
    localAddress,
  )
}

/**
 * Makes one call, after which the service knows the headers, and then opens requests with the same headers whose bodies do not
 * arrive.
 */
async function holdBodies(
  { port }: Target,
  known: { path: string; init: RequestInit },
  lines: readonly string[],
): Promise<void> {
  const { headers = {} } = known.init
  const answer = await fetch(`http://127.0.0.1:${port}${known.path}`, known.init)
  const cookie = answer.headers.get('set-cookie')?.split(';')[0]
  const fields = Object.entries({ ...headers, ...(cookie !== undefined && { cookie }) })
  const head = fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  times(2_400, index =>
    keepOpen({ port }, socket =>
      socket.write(`${lines[index % lines.length]} HTTP/1.1\r\nHost: x\r\n${head}Content-Length: 100\r\n\r\n{`),
    ),
  )
}

function withBody(head: string, body: string): string {
  return `${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
}

export const ATTACKS = {
  /** One connection that fills one read of the server with requests. */
  'pipelined-pages': async target => {
    keepOpen(target, socket => {
      socket.write(pipelined(['GET /docs/'], 65_536))
      drip(socket, 'GET /docs/ HTTP/1.1\r\nHost:x\r\n\r\n')
    })
  },
  'pipelined-documents': async target => {
    const bytes = pipelined(['GET /openapi.json'], 1_700 * 39)
    times(4, () => keepOpen(target, socket => writeForever(socket, bytes)))
  },
  'pipelined-everything': async target => {
    const lines = [
      'HEAD /openapi.json',
      'OPTIONS /v1/messages/text',
      'GET /nope',
      'GET /docs/',
      'GET /docs/js/scalar.js',
      'GET /metrics',
      'GET /assets/none.js',
      'GET /v1/instance',
      'DELETE /admin/v1/instances',
      'GET /readyz',
    ]
    times(10, () => keepOpen(target, socket => writeForever(socket, pipelined(lines, 62_000))))
  },
  /** Many connections that request the largest files and do not read them. */
  'unread-documents': async target => {
    const bytes = pipelined(['GET /docs/js/scalar.js', 'GET /openapi.json', 'GET /docs/'], 1)
    times(500, () => keepOpen(target, socket => drip(socket, bytes.toString())))
  },
  'slow-sign-ins': async target => {
    times(2_200, () =>
      keepOpen(target, socket => {
        socket.write(`${SIGN_IN}Content-Length: 3000\r\n\r\n{`)
        drip(socket, ' ')
      }),
    )
  },
  'slow-bodies': async target => {
    times(2_400, index =>
      keepOpen(target, socket => {
        const token = `pmb_${randomBytes(32).toString('base64url')}`
        const line = BODY_TARGETS[index % BODY_TARGETS.length]
        socket.write(`${line} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n${JSON_TYPE}`)
        socket.write('Content-Length: 16000\r\n\r\n{')
        drip(socket, ' ')
      }),
    )
  },
  'held-bodies': async target => {
    times(1_000, () =>
      keepOpen(target, socket => {
        socket.write(`${SIGN_IN}Content-Length: ${MIB}\r\n\r\n`)
        socket.write(Buffer.alloc(MIB - 1, 0x20))
      }),
    )
  },
  'nested-bodies': async target => {
    const deep = (MIB >> 1) - 100
    const body = `{"key":${'['.repeat(deep)}${']'.repeat(deep)}}`
    times(4, () => requestForever(target, () => withBody(SIGN_IN, body)))
  },
  'slow-headers': async target => {
    times(2_200, () =>
      keepOpen(target, socket => {
        socket.write(`GET /v1/instance HTTP/1.1\r\nHost: x\r\nX-Slow: ${'x'.repeat(15_000)}`)
        drip(socket, 'x')
      }),
    )
  },
  'idle-connections': async target => {
    times(3_000, () => keepOpen(target, () => undefined))
  },
  'many-headers': async target => {
    const fields = Array.from({ length: 1_900 }, (_, n) => `a${n}:\r\n`).join('')
    times(20, () => requestForever(target, () => `GET /v1/instance HTTP/1.1\r\nHost: x\r\n${fields}\r\n`))
  },
  /** Wrong passwords from 24 addresses, ten connections each, as fast as the service answers. */
  'guessed-passwords': async target => {
    times(240, index =>
      requestForever(target, () => withBody(SIGN_IN, `{"key":"guess ${index}"}`), `127.0.1.${1 + (index % 24)}`),
    )
  },
  'guessed-keys': async target => {
    const authorization = () => `Authorization: Bearer pmb_${randomBytes(32).toString('base64url')}\r\n`
    const text = '{"to":"5511987654321","text":"x"}'
    times(20, () =>
      requestForever(target, () =>
        withBody(`POST /v1/messages/text HTTP/1.1\r\nHost: x\r\n${authorization()}${JSON_TYPE}`, text),
      ),
    )
    times(20, index =>
      requestForever(
        target,
        () => `GET /admin/v1/instances HTTP/1.1\r\nHost: x\r\n${authorization()}\r\n`,
        `127.0.2.${1 + index}`,
      ),
    )
    times(20, () =>
      requestForever(
        target,
        () =>
          `GET /admin/v1/instances HTTP/1.1\r\nHost: x\r\nCookie: pombal_session=${randomBytes(33).toString('base64url').slice(0, 43)}\r\n\r\n`,
      ),
    )
  },
  /** Five callers with a key who list the largest events again and again. */
  'large-lists': async target => {
    const { path, key } = keysOf(target).list
    times(5, () =>
      requestForever(target, () => `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`),
    )
  },
  'bodies-with-key': async target => {
    const headers = { authorization: `Bearer ${keysOf(target).token}`, ...JSON_BODY }
    const known = { path: '/v1/instance', init: { headers } }
    await holdBodies(target, known, ['POST /link/read', 'POST /v1/messages/text'])
  },
  'bodies-with-link': async target => {
    const body = JSON.stringify({ token: keysOf(target).link })
    // The answer sets the cookie.
    await holdBodies(target, { path: '/link/read', init: { method: 'POST', headers: JSON_BODY, body } }, [
      'POST /link/read',
    ])
  },
  'bodies-with-session': async target => {
    const headers = { cookie: keysOf(target).session, 'sec-fetch-site': 'same-origin', ...JSON_BODY }
    const known = { path: '/admin/v1/session', init: { headers } }
    await holdBodies(target, known, ['POST /admin/v1/session/password', 'POST /admin/v1/session'])
  },
  'idle-metrics': async ({ metricsPort = 0 }) => {
    times(200, () => keepOpen({ port: metricsPort }, () => undefined))
  },
} as const satisfies Record<string, Attack>

export type AttackName = keyof typeof ATTACKS

/** After this time all connections are open, or the service refuses them. */
const STARTED_AFTER_MS = 1_500

export async function startAttack(name: AttackName, target: Target): Promise<void> {
  await ATTACKS[name](target)
  await sleep(STARTED_AFTER_MS)
}
