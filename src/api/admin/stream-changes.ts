import type { Readable } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { HintTopic } from '../../store/hints.ts'
import type { Api, ApiContext } from '../context.ts'
import { EventStream } from '../http/event-stream.ts'
import { AccountStreams } from './access/account-streams.ts'
import { mayReach } from './access/authorize.ts'
import { endWithAccess } from './access/stream-access.ts'

/** The hints that are forwarded, and their names in the stream. */
const FORWARDED = {
  connection: 'connection',
  goal: 'instance',
  webhook: 'webhook',
  log: 'log',
} as const satisfies Partial<Record<HintTopic, string>>

/** Changes are batched for this long, to limit the events of a busy instance. */
const BATCH_MS = 200
/** Beats show the reader that the service still answers. */
const BEAT_MS = 5_000
/** How often readers are asked to poll, because hints may be lost. */
const POLL_MS = 20_000

const streamSchema = Type.Unsafe<Readable>({
  type: 'string',
  description: 'Server-sent events.',
  examples: ['event: change\ndata: {"data":{"instanceId":"inst_4f9k2m7q1x0z","what":"log"}}\n\n'],
})

export function streamChanges(api: Api, context: ApiContext): void {
  const streams = new AccountStreams()
  api.get(
    '/changes',
    {
      exposeHeadRoute: false,
      schema: {
        operationId: 'streamChanges',
        summary: 'Follow changes of all instances that the caller may access',
        description:
          'Server-sent events. `change` has an `instanceId` and, in `what`, the data that changed: `connection`, ' +
          '`instance`, `webhook` or `log` (messages, files, events, deliveries). `refresh` is sent every 20 s and asks to read ' +
          'everything again, because a change may have been missed. `beat` is sent every 5 s. The stream ends with the session, ' +
          'when the access of its account changes, and when the database has not answered for about 12 s.',
        tags: ['Panel'],
        produces: ['text/event-stream'],
        response: { 200: streamSchema },
      },
    },
    async (request, reply) => {
      streams.admit(request, reply)
      const stream = new EventStream(context.closing)
      forwardChanges(stream, context, request)
      return reply.type('text/event-stream').header('x-accel-buffering', 'no').send(stream.body)
    },
  )
}

function forwardChanges(stream: EventStream, context: ApiContext, request: FastifyRequest): void {
  const { store, logger } = context
  const mayGoOn = endWithAccess(stream, context, request)
  const batch = new Map<string, { instanceId: string; what: string }>()
  let timer: NodeJS.Timeout | undefined

  async function sendBatch(): Promise<void> {
    timer = undefined
    const changes = [...batch.values()]
    batch.clear()
    try {
      if (await mayGoOn()) for (const change of changes) stream.send('change', { data: change })
    } catch (error) {
      // The reader reconnects.
      logger.warn({ err: error }, 'stream.failed')
      stream.end()
    }
  }
  const stops = Object.entries(FORWARDED).map(([topic, what]) =>
    store.hints.on(topic as HintTopic, instanceId => {
      if (!mayReach(request, instanceId)) return
      batch.set(`${what} ${instanceId}`, { instanceId, what })
      timer ??= setTimeout(sendBatch, BATCH_MS)
    }),
  )
  const pollTimer = setInterval(() => stream.send('refresh', { data: {} }), POLL_MS)
  const beatTimer = setInterval(() => stream.send('beat', { data: {} }), BEAT_MS)
  stream.send('refresh', { data: {} })
  stream.onEnd(() => {
    for (const stop of stops) stop()
    clearTimeout(timer)
    clearInterval(pollTimer)
    clearInterval(beatTimer)
  })
}
