import { SegmentedControl } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { statisticsQuery } from '../../api/queries.ts'
import type { Statistics, StatisticsBucket } from '../../api/types.ts'
import { Problem } from '../../components/feedback/problem.tsx'
import { Waiting } from '../../components/feedback/waiting.tsx'
import { Card } from '../../components/panels.tsx'
import { duration } from '../../components/time.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import { Axis } from './axis.tsx'
import { MessageCharts } from './message-charts.tsx'
import classes from './statistics.module.css'

const RANGES = ['1', '24', '168'] as const
type Range = (typeof RANGES)[number]
const SERIES = ['first', 'retried', 'redelivered', 'waiting', 'exhausted', 'notPosted'] as const
type Series = (typeof SERIES)[number]

const WIDTH = 560
const HEIGHT = 150
const GAP = 2

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
      {error && !data && <Problem error={error} onRetry={() => void refetch()} />}
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

function sum(buckets: readonly StatisticsBucket[], series: Series): number {
  return buckets.reduce((total, bucket) => total + bucket[series], 0)
}

function Outcomes({ statistics: { buckets } }: { statistics: Statistics }) {
  const words = useWords()
  const shown = SERIES.filter(series => sum(buckets, series) > 0)
  const totals = buckets.map(bucket => SERIES.reduce((total, series) => total + bucket[series], 0))
  const highest = Math.max(1, ...totals)
  const total = totals.reduce((all, one) => all + one, 0)
  const step = WIDTH / buckets.length
  return (
    <figure className={classes.figure}>
      <figcaption className={classes.caption}>
        <strong>{words.statistics.outcomes}</strong> <span>{words.statistics.total(total)}</span>
      </figcaption>
      {total === 0 ? (
        <p className={classes.none}>{words.statistics.none}</p>
      ) : (
        <>
          <span className={classes.scale} aria-hidden>
            {highest}
          </span>
          <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} className={classes.plot} preserveAspectRatio="none" aria-hidden>
            {buckets.map((bucket, index) => {
              let y = HEIGHT
              return SERIES.map(series => {
                const height = (bucket[series] / highest) * HEIGHT
                y -= height
                return height === 0 ? null : (
                  <rect
                    key={`${bucket.at} ${series}`}
                    className={classes[series]}
                    x={index * step + GAP / 2}
                    y={y}
                    width={Math.max(1, step - GAP)}
                    height={height}
                  >
                    <title>{`${words.statistics[series]}: ${bucket[series]}`}</title>
                  </rect>
                )
              })
            })}
            <line className={classes.axis} x1="0" x2={WIDTH} y1={HEIGHT} y2={HEIGHT} />
          </svg>
          <Axis buckets={buckets} />
          <ul className={classes.legend}>
            {shown.map(series => (
              <li key={series}>
                <span className={classes.swatch} data-series={series} aria-hidden /> {words.statistics[series]}{' '}
                <b>{sum(buckets, series)}</b>
              </li>
            ))}
          </ul>
          <div className="visually-hidden">
            <table>
              <caption>{words.statistics.outcomes}</caption>
              <thead>
                <tr>
                  <th>{words.statistics.time}</th>
                  {shown.map(series => (
                    <th key={series}>{words.statistics[series]}</th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {buckets
                  .filter((_, index) => totals[index])
                  .map(bucket => (
                    <tr key={bucket.at}>
                      <th>{bucket.at}</th>
                      {shown.map(series => (
                        <td key={series}>{bucket[series]}</td>
                      ))}
                    </tr>
                  ))}
              </tbody>
            </table>
          </div>
        </>
      )}
    </figure>
  )
}

function Latency({ statistics: { buckets, medianMs, p95Ms } }: { statistics: Statistics }) {
  const words = useWords()
  const highest = Math.max(1, ...buckets.map(({ p95Ms: ms }) => ms ?? 0))
  const step = WIDTH / buckets.length
  const y = (ms: number) => HEIGHT - (ms / highest) * HEIGHT
  return (
    <figure className={classes.figure}>
      <figcaption className={classes.caption}>
        <strong>{words.statistics.latency}</strong>
      </figcaption>
      {medianMs === null || p95Ms === null ? (
        <p className={classes.none}>
          {sum(buckets, 'redelivered') > 0 ? words.statistics.onlyRedelivered : words.statistics.noLatency}
        </p>
      ) : (
        <>
          <span className={classes.scale} aria-hidden>
            {duration(highest)}
          </span>
          <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} className={classes.plot} preserveAspectRatio="none" aria-hidden>
            {buckets.map((bucket, index) =>
              bucket.p95Ms === null || bucket.medianMs === null ? null : (
                <g key={bucket.at}>
                  <rect
                    className={classes.spread}
                    x={index * step + GAP / 2}
                    width={Math.max(1, step - GAP)}
                    y={y(bucket.p95Ms)}
                    height={Math.max(2, HEIGHT - y(bucket.p95Ms))}
                  />
                  <rect
                    className={classes.median}
                    x={index * step + GAP / 2}
                    width={Math.max(1, step - GAP)}
                    y={y(bucket.medianMs)}
                    height={Math.max(2, HEIGHT - y(bucket.medianMs))}
                  />
                </g>
              ),
            )}
            <line className={classes.axis} x1="0" x2={WIDTH} y1={HEIGHT} y2={HEIGHT} />
          </svg>
          <Axis buckets={buckets} />
          <ul className={classes.legend}>
            <li>
              <span className={classes.swatch} data-series="median" aria-hidden /> {words.statistics.median}{' '}
              <b>{duration(medianMs)}</b>
            </li>
            <li>
              <span className={classes.swatch} data-series="spread" aria-hidden /> {words.statistics.p95}{' '}
              <b>{duration(p95Ms)}</b>
            </li>
          </ul>
        </>
      )}
    </figure>
  )
}
