import type { Statistics } from '../../api/types.ts'
import { useWords } from '../../i18n/i18n.tsx'
import { Axis } from './axis.tsx'
import classes from './statistics.module.css'

const SERIES = ['sent', 'received', 'queued', 'failed'] as const
const WIDTH = 560
const HEIGHT = 150
const GAP = 2

/** Messages over time, and why some failed. */
export function MessageCharts({ statistics: { buckets, failures } }: { statistics: Statistics }) {
  const { tools, failures: reasons, statistics: words } = useWords()
  const sumOf = (series: (typeof SERIES)[number]) => buckets.reduce((sum, { messages }) => sum + messages[series], 0)
  const totals = buckets.map(({ messages }) => SERIES.reduce((sum, series) => sum + messages[series], 0))
  const total = totals.reduce((all, one) => all + one, 0)
  const highest = Math.max(1, ...totals)
  const step = WIDTH / buckets.length
  const shown = SERIES.filter(series => sumOf(series) > 0)
  return (
    <>
      <figure className={classes.figure}>
        <figcaption className={classes.caption}>
          <strong>{tools.chart.title}</strong> <span>{tools.chart.total(total)}</span>
        </figcaption>
        {total === 0 ? (
          <p className={classes.none}>{tools.chart.none}</p>
        ) : (
          <>
            <span className={classes.scale} aria-hidden>
              {highest}
            </span>
            <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} className={classes.plot} preserveAspectRatio="none" aria-hidden>
              {buckets.map(({ at, messages }, index) => {
                let y = HEIGHT
                return SERIES.map(series => {
                  const height = (messages[series] / highest) * HEIGHT
                  y -= height
                  return height === 0 ? null : (
                    <rect
                      key={`${at} ${series}`}
                      className={classes[series]}
                      x={index * step + GAP / 2}
                      y={y}
                      width={Math.max(1, step - GAP)}
                      height={height}
                    >
                      <title>{`${tools.chart[series]}: ${messages[series]}`}</title>
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
                  <span className={classes.swatch} data-series={series} aria-hidden /> {tools.chart[series]}{' '}
                  <b>{sumOf(series)}</b>
                </li>
              ))}
            </ul>
            <div className="visually-hidden">
              <table>
                <caption>{tools.chart.title}</caption>
                <thead>
                  <tr>
                    <th>{words.time}</th>
                    {shown.map(series => (
                      <th key={series}>{tools.chart[series]}</th>
                    ))}
                  </tr>
                </thead>
                <tbody>
                  {buckets
                    .filter((_, index) => totals[index])
                    .map(({ at, messages }) => (
                      <tr key={at}>
                        <th>{at}</th>
                        {shown.map(series => (
                          <td key={series}>{messages[series]}</td>
                        ))}
                      </tr>
                    ))}
                </tbody>
              </table>
            </div>
          </>
        )}
      </figure>
      <figure className={classes.figure}>
        <figcaption className={classes.caption}>
          <strong>{tools.chart.reasons}</strong>
        </figcaption>
        {failures.length === 0 ? (
          <p className={classes.none}>{tools.chart.noFailures}</p>
        ) : (
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
        )}
      </figure>
    </>
  )
}
