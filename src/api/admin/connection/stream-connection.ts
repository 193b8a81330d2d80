import type { Readable } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { InstanceId } from '../../../domain/ids.ts'
import type { Api, ApiContext } from '../../context.ts'
import { EventStream } from '../../http/event-stream.ts'
import { AccountStreams } from '../access/account-streams.ts'
import { endWithAccess } from '../access/stream-access.ts'
import { getInstanceOrRefuse, instanceParams } from '../instances/instance-params.ts'
import { findConnection } from './find-connection.ts'

const POLL_MS = 3_000

const streamSchema = Type.Unsafe<Readable>({
  type: 'string',
  description: 'Server-sent events.',
  examples: ['event: connection\ndata: {"data":{"state":"linking","qr":"2@…"}}\n\n'],
})

export function streamConnection(api: Api, context: ApiContext): void {
  const streams = new AccountStreams()
  api.get(
    '/instances/:id/connection/stream',
    {
      exposeHeadRoute: false,
      schema: {
        operationId: 'streamConnection',
        summary: 'Follow the connection',
        description:
          'Server-sent events. `connection` has the data of `getConnection`, and is sent at once and after every change. ' +
          'The stream ends with `deleted` when the instance is deleted.',
        tags: ['Connection'],
        params: instanceParams,
        produces: ['text/event-stream'],
        response: { 200: streamSchema },
      },
      config: { refusals: ['instance_not_found'] },
    },
    async (request, reply) => {
      const { id } = await getInstanceOrRefuse(context.store, request.params.id)
      streams.admit(request, reply)
      const stream = new EventStream(context.closing)
      followConnection(stream, context, request, id)
      return reply.type('text/event-stream').header('x-accel-buffering', 'no').send(stream.body)
    },
  )
}

/** Sends every change until the stream ends. A hint during an update causes one more update. */
function followConnection(stream: EventStream, context: ApiContext, request: FastifyRequest, id: InstanceId): void {
  const { store, logger, settings } = context
  const mayGoOn = endWithAccess(stream, context, request)
  let sent = ''
  let isUpdating = false
  let again = false

  async function update(): Promise<void> {
    const view = await findConnection(context, request, id)
    const current = JSON.stringify(view)
    if (current === sent || !(await mayGoOn())) return
    if (view && stream.send('connection', { data: view })) sent = current
    if (!view) {
      stream.send('deleted', { data: { instanceId: id } })
      stream.end()
    }
  }

  async function poll(): Promise<void> {
    again = true
    if (isUpdating) return
    isUpdating = true
    try {
      while (again && !stream.ended) {
        again = false
        await update()
      }
    } catch (error) {
      // The reader reconnects.
      logger.warn({ err: error, instanceId: id }, 'stream.failed')
      stream.end()
    } finally {
      isUpdating = false
    }
  }

  const stopHints = store.hints.on('connection', poll, id)
  const timer = setInterval(poll, settings.streamPollMs ?? POLL_MS)
  stream.onEnd(() => {
    stopHints()
    clearInterval(timer)
  })
  void poll()
}
