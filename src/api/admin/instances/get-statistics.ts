import { Type } from 'typebox'
import { BoundedMap } from '../../../kit/bounded-map.ts'
import { EventLoopBudget } from '../../../kit/event-loop-budget.ts'
import type { DeliveryOutcomes, MessageCounts } from '../../../store/statistics/statistics.ts'
import type { Api, ApiContext } from '../../context.ts'
import { dataOf } from '../../resources/schema-kit.ts'
import { statisticsSchema, statisticsView } from '../../resources/statistics.ts'
import { getInstanceOrRefuse, instanceParams } from './instance-params.ts'

const MINUTE_MS = 60_000
/** Bucket lengths by number of hours. They give about fifty bars. */
const BUCKET_MS: Readonly<Record<number, number>> = { 1: MINUTE_MS, 24: 30 * MINUTE_MS, 168: 180 * MINUTE_MS }
const HOUR_MS = 60 * MINUTE_MS
/** A past bucket without pending deliveries and queued messages changes only by redeliveries, so it is cached for this time. */
const KEPT_MS = 5 * MINUTE_MS
const MAX_KEPT = 5_000

interface Counted {
  outcomes: DeliveryOutcomes
  messages: MessageCounts
}

interface Kept extends Counted {
  until: number
}

export function getStatistics(api: Api, { store, now }: ApiContext): void {
  const kept = new BoundedMap<string, Kept>(MAX_KEPT)
  /** SQLite answers synchronously: without this budget, one call would count all its buckets before any other call runs. */
  const budget = new EventLoopBudget(1)

  /**
   * Counts one bucket per query, so that other calls can run in between.
   * @param queued the number of queued messages, counted before the outcomes: a past bucket without any gets none later
   */
  async function count(instanceId: string, at: number, bucketMs: number, queued: number): Promise<Counted> {
    const key = `${instanceId} ${at} ${bucketMs}`
    const known = kept.get(key)
    if (known && known.until > now()) return known
    await budget.take(instanceId)
    const [outcomes, settled] = await Promise.all([
      store.statistics.outcomes(instanceId, at, at + bucketMs),
      store.statistics.messages(instanceId, at, at + bucketMs),
    ])
    const messages = { ...settled, queued }
    const isOver = outcomes.waiting === 0 && queued === 0
    if (at + bucketMs < now() && isOver) kept.set(key, { outcomes, messages, until: now() + KEPT_MS })
    return { outcomes, messages }
  }

  api.get(
    '/instances/:id/statistics',
    {
      schema: {
        operationId: 'getStatistics',
        summary: 'Messages, and deliveries by outcome and latency, over time',
        tags: ['Statistics'],
        params: instanceParams,
        querystring: Type.Object({
          hours: Type.Unsafe<number>({
            type: 'integer',
            enum: [1, 24, 168],
            description: 'How far back: 1, 24 or 168.',
          }),
        }),
        response: {
          200: dataOf(
            statisticsSchema,
            'Events by the time of their creation, and messages by the time at which they were accepted or received.',
          ),
        },
      },
      config: { refusals: ['instance_not_found', 'invalid_request'] },
    },
    async request => {
      const { hours } = request.query
      const { id } = await getInstanceOrRefuse(store, request.params.id)
      const bucketMs = BUCKET_MS[hours]!
      const last = Math.floor(now() / bucketMs) * bucketMs
      const first = last - hours * HOUR_MS + bucketMs
      const starts = Array.from({ length: (last - first) / bucketMs + 1 }, (_, index) => first + index * bucketMs)
      const queued = await store.statistics.queued(id, [...starts, last + bucketMs])
      const buckets: (Counted & { at: number })[] = []
      for (const [index, at] of starts.entries()) {
        const { outcomes, messages } = await count(id, at, bucketMs, queued[index]!)
        buckets.push({ at, outcomes, messages })
      }
      return { data: statisticsView(buckets, await store.statistics.failures(id, first)) }
    },
  )
}
