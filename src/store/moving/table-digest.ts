import { hash } from 'node:crypto'

/** A value of a row as both databases have it. */
export type Value = string | number | Uint8Array | null

/** A column as PostgreSQL describes it. */
export interface Column {
  name: string
  type: 'text' | 'bigint' | 'bytea'
}

/**
 * The number of rows of a table, and the sum of the digests of the rows. The sum does not depend on their order. A
 * digest is the first 8 bytes of the SHA-256 of the row's values, each with its length. Each side computes it from its
 * own rows.
 */
export class TableDigest {
  rows: number
  sum: bigint

  constructor(rows = 0, sum = 0n) {
    this.rows = rows
    this.sum = sum
  }

  add(row: readonly Value[]): void {
    let text = ''
    for (const value of row) text += described(value)
    this.rows += 1
    this.sum += hash('sha256', text, 'buffer').readBigInt64BE(0)
  }
}

function described(value: Value): string {
  if (value === null) return '~'
  if (typeof value === 'string') return `${Buffer.byteLength(value)}:${value}`
  const text = typeof value === 'number' ? String(value) : Buffer.from(value).toString('hex')
  return `${text.length}:${text}`
}

/** The query that makes PostgreSQL compute the same from its rows. */
export function digestQuery(table: string, columns: readonly Column[]): string {
  const values = columns.map(({ name, type }) => {
    const text = type === 'bytea' ? `encode("${name}", 'hex')` : `"${name}"::text`
    return `coalesce(octet_length(${text})::text || ':' || ${text}, '~')`
  })
  const digest = `encode(substr(sha256(convert_to(${values.join(' || ')}, 'UTF8')), 1, 8), 'hex')`
  return `select count(*) as rows, coalesce(sum(('x' || ${digest})::bit(64)::bigint), 0)::text as sum from "${table}"`
}
