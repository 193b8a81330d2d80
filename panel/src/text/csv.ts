/** A spreadsheet would run a cell that begins so as a formula; some also read the wide forms of East Asia. */
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
