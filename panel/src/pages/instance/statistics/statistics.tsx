import { SegmentedControl } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { statisticsQuery } from '../../../api/queries.ts'
import type { Statistics } from '../../../api/types.ts'
import { ReadProblem } from '../../../components/feedback/problem.tsx'
import { Waiting } from '../../../components/feedback/waiting.tsx'
import { Card } from '../../../components/panels.tsx'
import { duration } from '../../../components/time.tsx'
import { useLanguage, useWords } from '../../../i18n/i18n.tsx'
import { barAt, Chart, HEIGHT, Legend, Plot, StackedBars } from './chart.tsx'
import { MessageCharts } from './message-charts.tsx'
import classes from './statistics.module.css'

const RANGES = ['1', '24', '168'] as const
type Range = (typeof RANGES)[number]
const SERIES = ['first', 'retried', 'redelivered', 'waiting', 'exhausted', 'notPosted'] as const

/** The results of deliveries over time, and how long they took. */
export function DeliveryCharts({ instanceId }: { instanceId: string }) {
  const words = useWords()
  const [range, setRange] = useState<Range>('24')
  const { data, error, refetch } = useQuery(statisticsQuery(instanceId, Number(range)))
  return (
    <Card
      title={words.statistics.title}
      action={
        <SegmentedControl
          size="xs"
          aria-label={words.statistics.range}
          value={range}
          onChange={value => setRange(RANGES.find(one => one === value) ?? '24')}
          data={RANGES.map(value => ({ value, label: words.statistics.ranges[value] }))}
        />
      }
    >
      <ReadProblem data={data} error={error} refetch={refetch} />
      {!data && !error && <Waiting />}
      {data && (
        <div className={classes.charts}>
          <MessageCharts statistics={data} />
          <Outcomes statistics={data} />
          <Latency statistics={data} />
        </div>
      )}
    </Card>
  )
}

function Outcomes({ statistics: { buckets } }: { statistics: Statistics }) {
  const { statistics: words } = useWords()
  return (
    <StackedBars
      title={words.outcomes}
      total={words.total}
      none={words.none}
      names={words}
      series={SERIES}
      buckets={buckets.map(bucket => ({ at: bucket.at, counts: bucket }))}
    />
  )
}

function Latency({ statistics: { buckets, medianMs, p95Ms } }: { statistics: Statistics }) {
  const { statistics: words } = useWords()
  const { language } = useLanguage()
  const highest = Math.max(1, ...buckets.map(({ p95Ms: ms }) => ms ?? 0))
  const barOf = (ms: number, index: number) => {
    const y = HEIGHT - (ms / highest) * HEIGHT
    return { ...barAt(index, buckets.length), y, height: Math.max(2, HEIGHT - y) }
  }
  const isRedelivered = buckets.some(({ redelivered }) => redelivered > 0)
  const none = isRedelivered ? words.onlyRedelivered : words.noLatency
  return (
    <Chart title={words.latency} none={medianMs === null || p95Ms === null ? none : null}>
      <Plot highest={duration(highest, language)} buckets={buckets}>
        {buckets.map((bucket, index) =>
          bucket.p95Ms === null || bucket.medianMs === null ? null : (
            <g key={bucket.at}>
              <rect className={classes.spread} {...barOf(bucket.p95Ms, index)} />
              <rect className={classes.median} {...barOf(bucket.medianMs, index)} />
            </g>
          ),
        )}
      </Plot>
      <Legend
        entries={[
          { series: 'median', name: words.median, value: duration(medianMs ?? 0, language) },
          { series: 'spread', name: words.p95, value: duration(p95Ms ?? 0, language) },
        ]}
      />
    </Chart>
  )
}
