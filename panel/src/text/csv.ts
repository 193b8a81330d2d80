/** Spreadsheets run a cell as a formula if it begins with one of these; some also accept the full-width characters. */
const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/
/** Spreadsheets that separate cells at `;` or tabs, as in many countries, may also begin a cell within a text. */
const INNER_FORMULA = /([;\t\r\n][" ]*)(?=[=+\-@＝＋－＠])/g

export type Cell = string | number | null | undefined

/** One line of RFC 4180. A text that a spreadsheet would run as a formula gets a leading apostrophe. */
export function csvLine(cells: readonly Cell[]): string {
  return `${cells.map(cell).join(',')}\r\n`
}

/** The size limit of a file: the browser keeps the download in memory. */
const MAX_FILE_BYTES = 100 * 1024 * 1024
/** Without it, spreadsheets do not recognise UTF-8. */
const BYTE_ORDER_MARK = '\uFEFF'

interface CsvFile {
  file: Blob
  rows: number
  /** The file would have become too large, so the rest is left out. */
  isCut: boolean
}

/** A file of whole pages of rows. @param onRows called after each page with the number of rows so far */
export async function csvFile<T>(
  pages: AsyncIterable<readonly T[]>,
  columns: readonly string[],
  cellsOf: (row: T) => readonly Cell[],
  onRows: (rows: number) => void = () => {},
  maxBytes = MAX_FILE_BYTES,
): Promise<CsvFile> {
  const parts = [new Blob([BYTE_ORDER_MARK, csvLine(columns)])]
  let [rows, bytes] = [0, 0]
  const result = (isCut: boolean) => ({ file: new Blob(parts, { type: 'text/csv;charset=utf-8' }), rows, isCut })
  for await (const page of pages) {
    // The browser may move a Blob out of the memory of the page.
    const part = new Blob(page.map(row => csvLine(cellsOf(row))))
    bytes += part.size
    if (bytes > maxBytes) return result(true)
    parts.push(part)
    rows += page.length
    onRows(rows)
  }
  return result(false)
}

function cell(value: Cell): string {
  const text = String(value ?? '')
  const safe = typeof value === 'string' ? text.replace(INNER_FORMULA, "$1'").replace(FORMULA, "'$&") : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
