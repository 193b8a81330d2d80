import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { Type } from 'typebox'
import { Refusal } from '../../../domain/refusal.ts'
import type { FeedPage } from '../../../store/events/events.ts'
import type { Api, ApiContext } from '../../context.ts'
import { feedQuery } from '../../resources/events/feed.ts'
import { cursorOf, FeedCursor, parseAfter, toJson } from './feed-cursor.ts'
import type { FeedReaders } from './feed-readers.ts'

/** The page that a reader holds in memory. The next page is read when this one has been written to the socket. */
const PAGE = { limit: 200, maxBytes: 262_144 }
const HEARTBEAT_MS = 15_000
/** A reader that reads nothing for this long is disconnected. */
const STUCK_MS = 60_000

const streamSchema = Type.Unsafe<Readable>({
  type: 'string',
  description: 'Server-sent events.',
  examples: [
    'id: 42.p9s1t4w6\ndata: {"id":"evt_01kajxq8r2f0v7m3n5p9s1t4w6","cursor":"42.p9s1t4w6","body":{"event":"message.sent","instanceId":"inst_4f9k2m7q1x0z","timestamp":"2026-11-21T12:00:00.000Z","data":{"id":"msg_01kajxq8r2f0v7m3n5p9s1t4w6","to":"5511987654321","status":"sent"}}}\n\n',
  ],
})

export function streamFeed(api: Api, context: ApiContext, readers: FeedReaders): void {
  api.get(
    '/events/stream',
    {
      exposeHeadRoute: false,
      schema: {
        operationId: 'streamFeed',
        summary: 'Follow the events',
        description:
          'Server-sent events (WHATWG HTML): the events of `readFeed`, each as soon as it is recorded. The `id` is ' +
          "the event's cursor. To continue after a disconnect, send it as `Last-Event-ID`, as every client library " +
          'does; the header takes precedence over `after`. An `id` without `data` is a cursor without an event. The ' +
          'stream ends when the token or API key that it was opened with is replaced, revoked or expired, or the ' +
          'instance is deleted.',
        tags: ['Feed'],
        querystring: Type.Object(feedQuery),
        headers: Type.Object({
          'last-event-id': Type.Optional(
            Type.String({ description: 'The cursor of the last event that was received.' }),
          ),
        }),
        produces: ['text/event-stream'],
        response: { 200: streamSchema },
      },
      config: { scope: 'events', refusals: ['invalid_request', 'cursor_expired', 'too_many_readers'] },
    },
    async (request, reply) => {
      const { after, event: kind } = request.query
      const last = request.headers['last-event-id']
      const start = { after: last ? parseAfter('Last-Event-ID', last) : parseAfter('after', after), kind }
      readers.admit(request.instanceId, reply.raw)
      const cursor = await FeedCursor.open(context, request, reply, start)
      const first = await cursor.read(PAGE)
      const body = Readable.from(follow(cursor, first, context, reply), { objectMode: false })
      return reply.type('text/event-stream').header('x-accel-buffering', 'no').send(body)
    },
  )
}

/** Ends without an error. The reader then connects again and gets an error response with the reason. */
export async function* follow(
  cursor: Pick<FeedCursor, 'read' | 'next' | 'position' | 'ended'>,
  first: FeedPage,
  { logger }: Pick<ApiContext, 'logger'>,
  reply: Pick<FastifyReply, 'raw'>,
): AsyncGenerator<string> {
  let sentAt = performance.now()
  let sent = ''
  try {
    for (let page = first; ; page = await cursor.read(PAGE)) {
      const text = blocksOf(page, sent, cursor.position, performance.now() - sentAt)
      if (text !== '') {
        const stuck = setTimeout(() => reply.raw.destroy(), STUCK_MS)
        yield text
        clearTimeout(stuck)
        sentAt = performance.now()
        sent = cursor.position
      }
      await cursor.next(page, HEARTBEAT_MS - (performance.now() - sentAt))
      if (cursor.ended.aborted) return
    }
  } catch (error) {
    if (!(error instanceof Refusal)) logger.warn({ err: error }, 'feed.stream_failed')
  }
}

/** @param sent the cursor that the reader has */
function blocksOf(page: FeedPage, sent: string, position: string, silentMs: number): string {
  const events = page.events.map(event => `id: ${cursorOf(event)}\ndata: ${toJson(event)}\n\n`).join('')
  const lastEvent = page.events.at(-1)
  const last = lastEvent === undefined ? sent : cursorOf(lastEvent)
  // A cursor without an event, so that a reader that has not received any event yet also continues where it began.
  if (position !== last) return `${events}id: ${position}\n\n`
  return events === '' && silentMs >= HEARTBEAT_MS ? ':\n\n' : events
}
