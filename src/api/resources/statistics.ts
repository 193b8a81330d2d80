import { type Static, Type } from 'typebox'
import { FAILURE_CODES } from '../../domain/message.ts'
import {
  type DeliveryOutcomes,
  LATENCY_BOUNDS_MS,
  type Latencies,
  MAX_COUNTED,
  type MessageCounts,
} from '../../store/statistics/statistics.ts'
import { moment, nullable, oneOf, toIso } from './schema-kit.ts'

const MEDIAN = 0.5
const P95 = 0.95

const latency = (share: string) =>
  nullable(
    Type.Number({
      description:
        `Of the events delivered without a redelivery, at least ${share} were delivered within this time, in ` +
        'milliseconds. It is the measured time of one of them.',
    }),
  )

const bucketSchema = Type.Object(
  {
    at: moment('The start of the bucket.'),
    first: Type.Integer({ description: 'Delivered by the first attempt.' }),
    retried: Type.Integer({ description: 'Delivered by a later attempt.' }),
    redelivered: Type.Integer({ description: 'Delivered by a redelivery.' }),
    exhausted: Type.Integer({ description: 'Exhausted.' }),
    waiting: Type.Integer({ description: 'Not ended yet.' }),
    notPosted: Type.Integer({
      description: 'Posted to no endpoint, although the default filter includes their kind.',
    }),
    messages: Type.Object(
      {
        sent: Type.Integer({ description: 'Accepted in the bucket and acknowledged by WhatsApp.' }),
        failed: Type.Integer({ description: 'Accepted in the bucket and failed.' }),
        queued: Type.Integer({ description: 'Accepted in the bucket and still queued.' }),
        received: Type.Integer({ description: 'Received in the bucket.' }),
      },
      { title: 'MessageCounts' },
    ),
    medianMs: latency('half'),
    p95Ms: latency('95 of 100'),
  },
  { title: 'StatisticsBucket', description: 'The events created in one period, by outcome.' },
)

export type StatisticsBucketView = Static<typeof bucketSchema>

export const statisticsSchema = Type.Object(
  {
    buckets: Type.Array(bucketSchema, { description: 'Oldest first, without gaps.' }),
    medianMs: latency('half'),
    p95Ms: latency('95 of 100'),
    failures: Type.Array(
      Type.Object({
        code: oneOf(FAILURE_CODES, { description: 'The reason.' }),
        count: Type.Integer({ description: 'Messages accepted in this time that failed for this reason.' }),
      }),
      { description: 'Failed messages by reason, the most frequent first.' },
    ),
  },
  { title: 'Statistics' },
)

export type StatisticsView = Static<typeof statisticsSchema>

export const deliveryCountsSchema = Type.Object(
  {
    delivered: Type.Integer({
      description: 'Events whose latest delivery to some endpoint succeeded. Deleted endpoints do not count.',
    }),
    exhausted: Type.Integer({
      description: 'Events whose latest delivery to some endpoint is exhausted. Deleted endpoints do not count.',
    }),
    notPosted: nullable(
      Type.Integer({
        description: 'Events that were never posted and that an endpoint would now receive; null unless requested.',
      }),
    ),
    redelivering: Type.Integer({ description: 'Events of any age with a redelivery that has not ended.' }),
  },
  { title: 'DeliveryCounts', description: `Each count goes up to ${MAX_COUNTED}.` },
)

export type DeliveryCountsView = Static<typeof deliveryCountsSchema>

interface Bucket {
  at: number
  outcomes: DeliveryOutcomes
  messages: MessageCounts
}

function bucketView({ at, outcomes, messages }: Bucket): StatisticsBucketView {
  const { latencies, ...counts } = outcomes
  return { at: toIso(at), ...counts, messages, medianMs: quantile(latencies, MEDIAN), p95Ms: quantile(latencies, P95) }
}

export function statisticsView(buckets: readonly Bucket[], failures: StatisticsView['failures']): StatisticsView {
  const all = Array.from({ length: LATENCY_BOUNDS_MS.length + 1 }, (_, index) =>
    merge(buckets.map(({ outcomes }) => outcomes.latencies[index]!)),
  )
  return {
    buckets: buckets.map(bucketView),
    medianMs: quantile(all, MEDIAN),
    p95Ms: quantile(all, P95),
    failures,
  }
}

function merge(parts: readonly Latencies[]): Latencies {
  return {
    count: parts.reduce((sum, { count }) => sum + count, 0),
    longestMs: Math.max(0, ...parts.map(({ longestMs }) => longestMs)),
  }
}

/**
 * The longest latency of the histogram's bucket that contains the quantile. Unlike an interpolated value, it was
 * measured, and at least this share of the events took no longer. Null for an empty histogram.
 */
export function quantile(latencies: readonly Latencies[], share: number): number | null {
  const total = latencies.reduce((sum, { count }) => sum + count, 0)
  let rank = share * total
  for (const { count, longestMs } of latencies) {
    if (count > 0 && rank <= count) return longestMs
    rank -= count
  }
  return null
}
