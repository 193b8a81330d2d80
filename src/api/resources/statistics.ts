import { type Static, Type } from 'typebox'
import { type DeliveryOutcomes, LATENCY_BOUNDS_MS, MAX_COUNTED } from '../../store/statistics/statistics.ts'
import { moment, nullable, toIso } from './schema-kit.ts'

const MEDIAN = 0.5
const P95 = 0.95

const latency = (share: string) =>
  nullable(
    Type.Number({
      description: `The estimated time in milliseconds within which ${share} of the delivered events were delivered.`,
    }),
  )

const bucketSchema = Type.Object(
  {
    at: moment('The start of the bucket.'),
    first: Type.Integer({ description: 'Delivered by the first attempt.' }),
    retried: Type.Integer({ description: 'Delivered by a later attempt or a redelivery.' }),
    exhausted: Type.Integer({ description: 'Exhausted.' }),
    waiting: Type.Integer({ description: 'Not ended yet.' }),
    notPosted: Type.Integer({ description: 'Created while no URL was set.' }),
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
  },
  { title: 'Statistics' },
)

export type StatisticsView = Static<typeof statisticsSchema>

export const deliveryCountsSchema = Type.Object(
  {
    delivered: Type.Integer({ description: 'Events whose latest delivery succeeded.' }),
    exhausted: Type.Integer({ description: 'Events whose latest delivery is exhausted.' }),
    redelivering: Type.Integer({ description: 'Redeliveries that have not ended, of events of any age.' }),
  },
  { title: 'DeliveryCounts', description: `Nothing is counted beyond ${MAX_COUNTED}.` },
)

export type DeliveryCountsView = Static<typeof deliveryCountsSchema>

function bucketView(at: number, outcomes: DeliveryOutcomes): StatisticsBucketView {
  const { latencies, ...counts } = outcomes
  return { at: toIso(at), ...counts, medianMs: quantile(latencies, MEDIAN), p95Ms: quantile(latencies, P95) }
}

export function statisticsView(buckets: readonly { at: number; outcomes: DeliveryOutcomes }[]): StatisticsView {
  const all = Array.from({ length: LATENCY_BOUNDS_MS.length + 1 }, (_, index) =>
    buckets.reduce((sum, { outcomes }) => sum + (outcomes.latencies[index] ?? 0), 0),
  )
  return {
    buckets: buckets.map(({ at, outcomes }) => bucketView(at, outcomes)),
    medianMs: quantile(all, MEDIAN),
    p95Ms: quantile(all, P95),
  }
}

/**
 * Estimates a quantile of a histogram, assuming an even distribution within each bucket. Returns null for an empty
 * histogram, and at most the highest bound.
 */
export function quantile(counts: readonly number[], share: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (total === 0) return null
  let rank = share * total
  for (const [index, count] of counts.entries()) {
    if (rank <= count) {
      const from = LATENCY_BOUNDS_MS[index - 1] ?? 0
      const to = LATENCY_BOUNDS_MS[index] ?? from
      return Math.round(from + (to - from) * (rank / count))
    }
    rank -= count
  }
  return LATENCY_BOUNDS_MS.at(-1) ?? null
}
