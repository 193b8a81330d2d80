/**
 * The HTTP interface of the stand-alone program. Every answer is JSON; an error is `{"error": {"code", "message"}}`.
 */
import type { IncomingMessage } from 'node:http'
import type { ContactMedia } from './media/media-types.ts'
import type { Order } from './scenario/order.ts'
import type { RequestHandler } from './simulator.ts'
import {
  type ContactCall,
  type ContactMessage,
  type ContactPresence,
  type ContactProfile,
  type ContactTyping,
  type OwnerMessage,
  type SavedContact,
  type Simulator,
  SimulatorError,
  type SimulatorErrorCode,
} from './types.ts'

interface Call {
  simulator: Simulator
  url: URL
  /** The part of the path that the pattern's group matched. */
  name: string
  body: string
}

interface Route {
  method: string
  path: RegExp
  answer: (call: Call) => Promise<unknown>
}

const MAX_BODY_BYTES = 32 * 1024 * 1024

const routes: readonly Route[] = [
  {
    method: 'POST',
    path: /^\/admin\/mock-phone\/scan-qr$/,
    answer: ({ simulator, url, body }) => {
      const [phone, name] = ['phone', 'name'].map(field => url.searchParams.get(field) ?? undefined)
      return simulator.scanQr(body, phone, name)
    },
  },
  {
    method: 'POST',
    path: /^\/admin\/mock-phone\/pairing-code$/,
    answer: ({ simulator, body }) => {
      const { code, phone } = strings(body, 'code', 'phone')
      return simulator.enterPairingCode(code!, phone!)
    },
  },
  {
    method: 'POST',
    path: /^\/admin\/mock-phone\/unlink$/,
    answer: async ({ simulator, body }) => {
      const { phone } = strings(body, 'phone')
      await simulator.unlink(phone!)
      return { phone }
    },
  },
  {
    method: 'GET',
    path: /^\/admin\/accounts$/,
    answer: async ({ simulator }) => ({ accounts: await simulator.listAccounts() }),
  },
  {
    method: 'POST',
    path: /^\/admin\/accounts\/(\d{1,15})$/,
    answer: ({ simulator, name }) => simulator.openAccount(name),
  },
  {
    method: 'POST',
    path: /^\/admin\/messages$/,
    answer: ({ simulator, body }) => {
      const { from, to } = strings(body, 'from', 'to')
      const { media, ...given } = parseObject(body) as Omit<ContactMessage, 'media'> & { media?: unknown }
      // `writeAs` validates its argument.
      const message = { ...given, from: from!, to: to! }
      return simulator.writeAs(media === undefined ? message : { ...message, media: mediaIn(media) })
    },
  },
  {
    method: 'POST',
    path: /^\/admin\/typing$/,
    answer: async ({ simulator, body }) => {
      // `typeAs` validates its argument.
      await simulator.typeAs(parseObject(body) as unknown as ContactTyping)
      return {}
    },
  },
  {
    method: 'POST',
    path: /^\/admin\/presence$/,
    answer: async ({ simulator, body }) => {
      // `setPresence` validates its argument.
      await simulator.setPresence(parseObject(body) as unknown as ContactPresence)
      return {}
    },
  },
  {
    method: 'POST',
    path: /^\/admin\/calls$/,
    // `callAs` validates its argument.
    answer: ({ simulator, body }) => simulator.callAs(parseObject(body) as unknown as ContactCall),
  },
  {
    method: 'POST',
    path: /^\/admin\/calls\/([0-9A-F]{1,64})\/end$/,
    answer: async ({ simulator, name }) => {
      await simulator.endCall(name)
      return {}
    },
  },
  {
    method: 'GET',
    path: /^\/admin\/phones\/(\d{1,15})\/calls$/,
    answer: async ({ simulator, name }) => ({ calls: await simulator.calls(name) }),
  },
  {
    method: 'POST',
    path: /^\/admin\/profile$/,
    answer: async ({ simulator, body }) => {
      const { picture, ...given } = parseObject(body) as unknown as Omit<ContactProfile, 'picture'> & {
        picture?: unknown
      }
      const image = typeof picture === 'string' ? Buffer.from(picture, 'base64') : null
      // `setProfile` validates its argument.
      await simulator.setProfile(picture === undefined ? given : { ...given, picture: image })
      return {}
    },
  },
  {
    method: 'GET',
    path: /^\/admin\/phones\/(\d{1,15})\/profile$/,
    answer: ({ simulator, url, name }) => simulator.profile(name, url.searchParams.get('viewer') ?? undefined),
  },
  {
    method: 'GET',
    path: /^\/admin\/phones\/(\d{1,15})\/presence$/,
    answer: ({ simulator, name }) => simulator.presence(name),
  },
  {
    method: 'GET',
    path: /^\/admin\/scenario$/,
    answer: ({ simulator }) => simulator.scenario(),
  },
  {
    method: 'POST',
    path: /^\/admin\/scenario$/,
    // `misbehave` validates its argument.
    answer: ({ simulator, body }) => simulator.misbehave(parseObject(body) as unknown as Order),
  },
  {
    method: 'GET',
    path: /^\/admin\/phones\/(\d{1,15})\/messages$/,
    answer: async ({ simulator, url, name }) => ({
      messages: await simulator.inbox(name, url.searchParams.get('whole') === 'true'),
    }),
  },
  {
    method: 'POST',
    path: /^\/admin\/phones\/(\d{1,15})\/messages$/,
    answer: ({ simulator, name, body }) => {
      const { media, ...given } = parseObject(body) as Omit<OwnerMessage, 'media'> & { media?: unknown }
      // `writeAsOwner` validates its argument.
      const message = { ...given, phone: name }
      return simulator.writeAsOwner(media === undefined ? message : { ...message, media: mediaIn(media) })
    },
  },
  {
    method: 'POST',
    path: /^\/admin\/phones\/(\d{1,15})\/contacts$/,
    answer: async ({ simulator, name, body }) => {
      // `saveContacts` validates its argument.
      await simulator.saveContacts(name, parseObject(body)['contacts'] as SavedContact[])
      return {}
    },
  },
  {
    method: 'POST',
    path: /^\/admin\/groups\/([\d-]{1,60}@g\.us)\/members$/,
    answer: async ({ simulator, name, body }) => {
      const members: unknown = parseObject(body)['members']
      if (!Array.isArray(members)) throw new SimulatorError('invalid_argument', '`members` must be a list of numbers')
      await simulator.joinGroup(name, members)
      return { group: name }
    },
  },
  {
    method: 'POST',
    path: /^\/admin\/groups$/,
    // `createGroup` validates its arguments.
    answer: ({ simulator, body }) => {
      const { by, subject, members } = parseObject(body)
      return simulator.createGroup(by as string, subject as string, members as string[])
    },
  },
  {
    method: 'POST',
    path: /^\/admin\/groups\/([\d-]{1,60}@g\.us)$/,
    // `changeGroup` validates its argument.
    answer: ({ simulator, name, body }) => simulator.changeGroup(name, parseObject(body)),
  },
  {
    method: 'GET',
    path: /^\/admin\/groups\/([\d-]{1,60}@g\.us)$/,
    answer: ({ simulator, url, name }) => simulator.group(name, url.searchParams.get('account') ?? undefined),
  },
]

const statuses = {
  unknown_qr: 404,
  unknown_pairing_code: 404,
  linking_failed: 409,
  unknown_account: 404,
  not_a_member: 422,
  invalid_argument: 400,
  failed: 500,
  crashed: 503,
  port_in_use: 503,
  closed: 503,
} as const satisfies Record<SimulatorErrorCode, number>

export function createControl(): RequestHandler {
  return (simulator, request, response) => {
    answer(simulator, request)
      .catch(refusal)
      .then(({ status, body }) => {
        const text = JSON.stringify(body)
        // A kept-alive connection may close while the next call is being sent, and that call would fail.
        const headers = { 'content-type': 'application/json', connection: 'close' }
        response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(text) })
        response.end(text)
      })
  }
}

interface Answer {
  status: number
  body: unknown
}

async function answer(simulator: Simulator, request: IncomingMessage): Promise<Answer> {
  const url = URL.parse(`http://localhost${request.url}`)
  if (!url) return failure(400, 'invalid_argument', 'the path is malformed')
  const matching = routes.filter(({ path }) => path.test(url.pathname))
  const route = matching.find(({ method }) => method === request.method)
  if (!route) return failure(matching.length > 0 ? 405 : 404, 'not_found', `no ${request.method} ${url.pathname}`)
  const body = await readBody(request)
  if (body === null) return failure(413, 'payload_too_large', `a body may be at most ${MAX_BODY_BYTES} bytes long`)
  const name = route.path.exec(url.pathname)?.[1] ?? ''
  return { status: 200, body: await route.answer({ simulator, url, name, body }) }
}

function refusal(error: unknown): Answer {
  if (error instanceof SimulatorError) return failure(statuses[error.code], error.code, error.message)
  return failure(500, 'internal_error', error instanceof Error ? error.message : String(error))
}

function failure(status: number, code: string, message: string): Answer {
  return { status, body: { error: { code, message } } }
}

/** Null if the body is too long. */
async function readBody(request: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of request) {
    length += chunk.length
    if (length <= MAX_BODY_BYTES) chunks.push(chunk)
  }
  return length <= MAX_BODY_BYTES ? Buffer.concat(chunks).toString() : null
}

function parseObject(body: string): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(body)
  } catch {
    throw new SimulatorError('invalid_argument', 'the body is not JSON')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new SimulatorError('invalid_argument', 'the body must be a JSON object')
  }
  return value as Record<string, unknown>
}

/** A file in a body: its content in `base64`, or a `size`. A `path` is refused, because it would give callers access to this machine's files. */
function mediaIn(given: unknown): ContactMedia {
  const { base64, path, ...media } = Object(given)
  if (path !== undefined) throw new SimulatorError('invalid_argument', '`media` must not have a `path` here')
  // `writeAs` validates its argument.
  return typeof base64 === 'string' ? { ...media, bytes: Buffer.from(base64, 'base64') } : media
}

/** The string fields of the body. Throws if a required one is missing. */
function strings(body: string, ...required: string[]): Record<string, string | undefined> {
  const fields: Record<string, string | undefined> = {}
  for (const [name, value] of Object.entries(parseObject(body))) if (typeof value === 'string') fields[name] = value
  for (const name of required) {
    if (fields[name] === undefined) throw new SimulatorError('invalid_argument', `\`${name}\` must be a string`)
  }
  return fields
}
