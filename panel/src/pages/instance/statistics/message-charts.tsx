import type { Statistics } from '../../../api/types.ts'
import { useWords } from '../../../i18n/i18n.tsx'
import { Chart, StackedBars } from './chart.tsx'
import classes from './statistics.module.css'

const SERIES = ['sent', 'received', 'queued', 'failed'] as const

/** Messages over time, and why some failed. */
export function MessageCharts({ statistics: { buckets, failures } }: { statistics: Statistics }) {
  const {
    tools: { chart },
    failures: reasons,
  } = useWords()
  return (
    <>
      <StackedBars
        title={chart.title}
        total={chart.total}
        none={chart.none}
        names={chart}
        series={SERIES}
        buckets={buckets.map(({ at, messages }) => ({ at, counts: messages }))}
      />
      <Chart title={chart.reasons} none={failures.length === 0 ? chart.noFailures : null}>
        <ul className={classes.reasons}>
          {failures.map(({ code, count }) => (
            <li key={code}>
              <span className={classes.reasonHead}>
                <code>{code}</code> <b>{count}</b>
              </span>
              <span className={classes.bar} aria-hidden>
                <span style={{ width: `${(count / failures[0]!.count) * 100}%` }} />
              </span>
              <span className={classes.reason}>{reasons[code]}</span>
            </li>
          ))}
        </ul>
      </Chart>
    </>
  )
}
