/** Spreadsheets run a cell as a formula if it begins with one of these; some also accept the full-width characters. */
const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/

export type Cell = string | number | null | undefined

/** One line of RFC 4180. A cell that a spreadsheet would run as a formula gets a leading apostrophe. */
export function csvLine(cells: readonly Cell[]): string {
  return `${cells.map(cell).join(',')}\r\n`
}

function cell(value: Cell): string {
  const text = String(value ?? '')
  const safe = typeof value === 'string' && FORMULA.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
