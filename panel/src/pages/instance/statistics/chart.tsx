import type { ReactNode } from 'react'
import { useWords } from '../../../i18n/i18n.tsx'
import { Axis } from './axis.tsx'
import classes from './statistics.module.css'

/** The size of a plot in its own units. It is stretched to the width of the page. */
const WIDTH = 560
export const HEIGHT = 150
const GAP = 2

interface ChartProps {
  title: string
  /** Beside the title. */
  note?: string
  /** The sentence that replaces the chart if there is nothing to show. */
  none: string | null
  children: ReactNode
}

export function Chart({ title, note, none, children }: ChartProps) {
  return (
    <figure className={classes.figure}>
      <figcaption className={classes.caption}>
        <strong>{title}</strong> {note && <span>{note}</span>}
      </figcaption>
      {none === null ? children : <p className={classes.none}>{none}</p>}
    </figure>
  )
}

interface PlotProps {
  /** The value at the upper edge. */
  highest: string | number
  buckets: readonly { at: string }[]
  children: ReactNode
}

export function Plot({ highest, buckets, children }: PlotProps) {
  return (
    <>
      <span className={classes.scale} aria-hidden>
        {highest}
      </span>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} className={classes.plot} preserveAspectRatio="none" aria-hidden>
        {children}
        <line className={classes.axis} x1="0" x2={WIDTH} y1={HEIGHT} y2={HEIGHT} />
      </svg>
      <Axis buckets={buckets} />
    </>
  )
}

/** Where the bar of a bucket is. */
export function barAt(index: number, count: number): { x: number; width: number } {
  const step = WIDTH / count
  return { x: index * step + GAP / 2, width: Math.max(1, step - GAP) }
}

interface LegendProps {
  entries: readonly { series: string; name: string; value: string | number }[]
}

export function Legend({ entries }: LegendProps) {
  return (
    <ul className={classes.legend}>
      {entries.map(({ series, name, value }) => (
        <li key={series}>
          <span className={classes.swatch} data-series={series} aria-hidden /> {name} <b>{value}</b>
        </li>
      ))}
    </ul>
  )
}

interface StackedBarsProps<S extends string> {
  title: string
  total: (count: number) => string
  none: string
  names: Readonly<Record<S, string>>
  /** From the bottom up. */
  series: readonly S[]
  buckets: readonly { at: string; counts: Readonly<Record<S, number>> }[]
}

/** Counts over time, by series. Screen readers get a table. */
export function StackedBars<S extends string>(props: StackedBarsProps<S>) {
  const { title, total, none, names, series, buckets } = props
  const { time } = useWords().statistics
  const sumOf = (one: S) => buckets.reduce((sum, { counts }) => sum + counts[one], 0)
  const totals = buckets.map(({ counts }) => series.reduce((sum, one) => sum + counts[one], 0))
  const all = totals.reduce((sum, count) => sum + count, 0)
  const highest = Math.max(1, ...totals)
  const shown = series.filter(one => sumOf(one) > 0)
  return (
    <Chart title={title} note={total(all)} none={all === 0 ? none : null}>
      <Plot highest={highest} buckets={buckets}>
        {buckets.map(({ at, counts }, index) => {
          let y = HEIGHT
          return series.map(one => {
            const height = (counts[one] / highest) * HEIGHT
            y -= height
            return height === 0 ? null : (
              <rect
                key={`${at} ${one}`}
                className={classes[one]}
                y={y}
                height={height}
                {...barAt(index, buckets.length)}
              >
                <title>{`${names[one]}: ${counts[one]}`}</title>
              </rect>
            )
          })
        })}
      </Plot>
      <Legend entries={shown.map(one => ({ series: one, name: names[one], value: sumOf(one) }))} />
      <div className="visually-hidden">
        <table>
          <caption>{title}</caption>
          <thead>
            <tr>
              <th>{time}</th>
              {shown.map(one => (
                <th key={one}>{names[one]}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {buckets
              .filter((_, index) => totals[index])
              .map(({ at, counts }) => (
                <tr key={at}>
                  <th>{at}</th>
                  {shown.map(one => (
                    <td key={one}>{counts[one]}</td>
                  ))}
                </tr>
              ))}
          </tbody>
        </table>
      </div>
    </Chart>
  )
}
