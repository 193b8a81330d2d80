import { Type } from 'typebox'
import type { Api, ApiContext } from '../../context.ts'
import { sendShared } from '../../http/limits/large-answers.ts'
import { feedPageSchema, feedQuery } from '../../resources/events/feed.ts'
import { FeedCursor, parseAfter, toJson } from './feed-cursor.ts'
import type { FeedReaders } from './feed-readers.ts'

const DEFAULT_LIMIT = 100
const MAX_LIMIT = 1_000
const MAX_WAIT_SECONDS = 25
/** 1 MiB, less what surrounds the events. */
const MAX_BYTES = 1_048_576 - 1_024
/** How long a call looks for the first event of a kind, even without `wait`. */
const SEARCH_MS = 1_000

const querySchema = Type.Object({
  ...feedQuery,
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: MAX_LIMIT, default: DEFAULT_LIMIT, description: 'The most events in a page.' }),
  ),
  wait: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: MAX_WAIT_SECONDS,
      default: 0,
      description: 'If there is no event, wait for one up to this many seconds.',
    }),
  ),
})

export function readFeed(api: Api, context: ApiContext, readers: FeedReaders): void {
  api.get(
    '/events',
    {
      schema: {
        operationId: 'readFeed',
        summary: 'Read the next events',
        description:
          "Returns the instance's events in the order in which they were recorded, whether or not they are posted to " +
          'a webhook. Continue with `nextCursor`: no event is missing or repeated, on any node and across restarts. ' +
          'An answer has at most 1 MiB. An instance may have 5 streams and polls open on a node.',
        tags: ['Feed'],
        querystring: querySchema,
        response: { 200: feedPageSchema },
      },
      config: { scope: 'events', refusals: ['invalid_request', 'cursor_expired', 'too_many_readers'] },
    },
    async (request, reply) => {
      const { after, event: kind, limit = DEFAULT_LIMIT, wait = 0 } = request.query
      const start = { after: parseAfter('after', after), kind }
      readers.admit(request.instanceId, reply.raw)
      const startedAt = performance.now()
      const waitUntil = startedAt + wait * 1_000
      const searchUntil = Math.max(waitUntil, startedAt + SEARCH_MS)
      const cursor = await FeedCursor.open(context, request, reply, start)
      for (;;) {
        const page = await cursor.read({ limit, maxBytes: MAX_BYTES })
        const leftMs = (page.isLast ? waitUntil : searchUntil) - performance.now()
        if (page.events.length === 0 && leftMs > 0 && !cursor.ended.aborted) {
          await cursor.next(page, leftMs)
          continue
        }
        const answer = `{"data":[${page.events.map(toJson).join(',')}],"nextCursor":"${cursor.position}"}`
        return sendShared(request, reply.type('application/json; charset=utf-8'), Buffer.from(answer))
      }
    },
  )
}
