/** Columns as wide as their longest cell, separated by two spaces. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map(row => row[column]?.length ?? 0))) ?? []
  const line = (row: readonly string[]) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')
  return rows.map(row => `${line(row).trimEnd()}\n`).join('')
}

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

/** Such as `3 h ago`. */
export function ago(ms: number): string {
  if (ms < MINUTE_MS) return `${Math.max(0, Math.round(ms / 1_000))} s ago`
  if (ms < HOUR_MS) return `${Math.round(ms / MINUTE_MS)} min ago`
  return ms < 2 * DAY_MS ? `${Math.round(ms / HOUR_MS)} h ago` : `${Math.round(ms / DAY_MS)} days ago`
}
