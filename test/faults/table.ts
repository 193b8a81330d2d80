import type { Fault, FaultReport } from './fault.ts'

export interface FaultRuns {
  fault: Fault
  reports: FaultReport[]
  /** Runs that ended with an error. */
  failed: number
}

const STORE_NAMES = { sqlite: 'SQLite', postgres: 'PostgreSQL' } as const

/** A Markdown table with a row for each fault. */
export function tableOf(rows: readonly FaultRuns[]): string {
  const head = [
    'Fault',
    'Store',
    'Runs',
    'Accepted',
    'Lost',
    'Duplicated',
    'Out of order',
    'Attempts repeated',
    'Recovered in',
  ]
  const lines = rows.map(({ fault, reports, failed }) => {
    const sum = (count: (report: FaultReport) => number) => reports.reduce((total, report) => total + count(report), 0)
    const others = sum(({ violations }) => violations.length)
    const notes = [...(failed > 0 ? [`${failed} FAILED`] : []), ...(others > 0 ? [`${others} BROKEN`] : [])]
    return [
      [fault.name, ...notes].join(', '),
      STORE_NAMES[fault.store],
      reports.length + failed,
      sum(({ accepted }) => accepted),
      sum(({ lost }) => lost),
      sum(({ doubled }) => doubled),
      sum(({ outOfOrder }) => outOfOrder),
      sum(({ repeated }) => repeated),
      secondsOf(reports.map(({ recoveredMs }) => recoveredMs)),
    ].map(String)
  })
  const rule = head.map((_, column) => (column < 2 ? '---' : '---:'))
  return [head, rule, ...lines].map(cells => `| ${cells.join(' | ')} |`).join('\n')
}

/** The range of the times. */
function secondsOf(times: readonly number[]): string {
  const known = times.filter(Number.isFinite).map(ms => (ms / 1_000).toFixed(1))
  if (known.length === 0) return '–'
  const sorted = known.toSorted((a, b) => Number(a) - Number(b))
  const [least, most] = [sorted[0]!, sorted.at(-1)!]
  return least === most ? `${least} s` : `${least}–${most} s`
}
