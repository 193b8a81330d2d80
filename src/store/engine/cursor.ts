import { InvalidCursor } from '../errors.ts'
import type { Page, PageRequest } from './page.ts'

/** Sorts after every ID. The first page starts here. */
export const TOP = '~'
const TOP_SEQ = Number.MAX_SAFE_INTEGER
const ID = { msg: /^msg_[0-9a-z]+$/, evt: /^evt_[0-9a-z]+$/, alt: /^alt_[0-9a-z]+$/, med: /^med_[0-9a-z]+$/ }

/**
 * The ID of the previous page's last row; `TOP` for the first page.
 * @throws InvalidCursor if the list did not issue the cursor
 */
export function idBefore({ cursor }: PageRequest, of: keyof typeof ID): string {
  if (cursor === undefined) return TOP
  const id = Buffer.from(cursor, 'base64url').toString()
  if (!ID[of].test(id) || cursorOf(id) !== cursor) throw new InvalidCursor()
  return id
}

/** The same for lists in the order of `seq`. */
export function seqBefore({ cursor }: PageRequest): number {
  if (cursor === undefined) return TOP_SEQ
  const seq = Number(Buffer.from(cursor, 'base64url').toString())
  if (!Number.isSafeInteger(seq) || seq <= 0 || cursorOf(seq) !== cursor) throw new InvalidCursor()
  return seq
}

/** The last row of the previous page of a list in the order of names, null for the first page. */
export function nameAfter({ cursor }: PageRequest): { name: string; seq: number } | null {
  if (cursor === undefined) return null
  const [, seq, name] = /^([1-9][0-9]{0,15}) ([^\0]*)$/s.exec(Buffer.from(cursor, 'base64url').toString()) ?? []
  if (seq === undefined || name === undefined || cursorOf(`${seq} ${name}`) !== cursor) throw new InvalidCursor()
  return { name, seq: Number(seq) }
}

/** The last row of the previous page of a list in the order of folded names, then IDs; null for the first page. */
export function nameAfterId({ cursor }: PageRequest): { name: string; id: string } | null {
  if (cursor === undefined) return null
  const [, id, name] = /^([0-9a-z@.:-]{1,80}) ([^\0]*)$/s.exec(Buffer.from(cursor, 'base64url').toString()) ?? []
  if (id === undefined || name === undefined || cursorOf(`${id} ${name}`) !== cursor) throw new InvalidCursor()
  return { name, id }
}

/**
 * The size of a page of messages. Without this limit, a page of long texts would block the process, and concurrent
 * pages could exhaust its memory.
 */
const MAX_PAGE_BYTES = 1_048_576

/** @returns how many of these rows, from the first, fit on a page: at most `limit`, and at least one */
export function countFitting(rows: readonly { bytes: number }[], limit: number): number {
  let count = 0
  let bytes = 0
  for (const row of rows.slice(0, limit)) {
    bytes += row.bytes
    if (count > 0 && bytes > MAX_PAGE_BYTES) break
    count += 1
  }
  return count
}

/**
 * @param rows one more than `limit` if there is another page
 * @param positionOf the position of a row in the list. The next page starts after the position of the last row.
 */
export function toPage<R, T>(
  rows: readonly R[],
  limit: number,
  positionOf: (row: R) => string | number,
  map: (row: R) => T,
): Page<T> {
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  const more = rows.length > limit && last !== undefined
  return { data: shown.map(map), nextCursor: more ? cursorOf(positionOf(last)) : null }
}

function cursorOf(position: string | number): string {
  return Buffer.from(String(position)).toString('base64url')
}
