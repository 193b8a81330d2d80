import type { Readable } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { HintTopic } from '../../store/hints.ts'
import type { Api, ApiContext } from '../context.ts'
import { EventStream } from '../http/event-stream.ts'
import { sessionDigest, sessionToken } from './sign-in/session-cookie.ts'

/** What is told of the store's hints. */
const TOLD = {
  connection: 'connection',
  goal: 'instance',
  webhook: 'webhook',
  log: 'log',
} as const satisfies Partial<Record<HintTopic, string>>

/** Changes are gathered for this long: a busy instance is told of a few times a second, not a thousand. */
const GATHER_MS = 200
/** By these a reader knows that the service answers: a connection can be open with nobody behind it. */
const BEAT_MS = 5_000
/** A hint may be lost, or be given on another node: whoever follows is told to look anyway. */
const LOOK_ANYWAY_MS = 20_000
/** How soon a session that was ended elsewhere is noticed. */
const SESSION_CHECK_MS = 3_000

const streamSchema = Type.Unsafe<Readable>({
  type: 'string',
  description: 'Events as they come.',
  examples: ['event: change\ndata: {"data":{"instanceId":"inst_4f9k2m7q1x0z","what":"log"}}\n\n'],
})

export function streamChanges(api: Api, context: ApiContext): void {
  api.get(
    '/changes',
    {
      exposeHeadRoute: false,
      schema: {
        operationId: 'streamChanges',
        summary: 'Follow what changes',
        description:
          'Server-sent events that name what to read again: `change` with `instanceId` and `what`, which is `connection`, ' +
          '`instance`, `webhook` or `log` (messages, events, deliveries); `look` from time to time, for a change may ' +
          'go untold; `beat` every 5 s while the service answers. Ends with the session.',
        tags: ['Panel'],
        produces: ['text/event-stream'],
        response: { 200: streamSchema },
      },
    },
    async (request, reply) => {
      const stream = new EventStream(context.closing)
      tellChanges(stream, context)
      if (request.sessionId) endWithSession(stream, context, request)
      return reply.type('text/event-stream').header('x-accel-buffering', 'no').send(stream.body)
    },
  )
}

function tellChanges(stream: EventStream, { store }: ApiContext): void {
  const gathered = new Map<string, { instanceId: string; what: string }>()
  let timer: NodeJS.Timeout | undefined

  function tell(): void {
    timer = undefined
    for (const change of gathered.values()) stream.send('change', { data: change })
    gathered.clear()
  }
  const stops = Object.entries(TOLD).map(([topic, what]) =>
    store.hints.on(topic as HintTopic, instanceId => {
      gathered.set(`${what} ${instanceId}`, { instanceId, what })
      timer ??= setTimeout(tell, GATHER_MS)
    }),
  )
  const looking = setInterval(() => stream.send('look', { data: {} }), LOOK_ANYWAY_MS)
  const beating = setInterval(() => stream.send('beat', { data: {} }), BEAT_MS)
  stream.send('look', { data: {} })
  stream.onEnd(() => {
    for (const stop of stops) stop()
    clearTimeout(timer)
    clearInterval(looking)
    clearInterval(beating)
  })
}

function endWithSession(
  stream: EventStream,
  { store, settings, now, logger }: ApiContext,
  request: FastifyRequest,
): void {
  const digest = sessionDigest(sessionToken(request) ?? '', settings.adminKey)
  const checking = setInterval(() => {
    store.sessions.find(digest, now()).then(
      session => session ?? stream.end(),
      error => logger.debug({ err: error }, 'session.check_failed'),
    )
  }, SESSION_CHECK_MS)
  stream.onEnd(() => clearInterval(checking))
}
