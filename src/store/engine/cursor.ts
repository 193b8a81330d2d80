import { InvalidCursor } from '../errors.ts'
import type { Page, PageRequest } from './page.ts'

/** Sorts after every identifier: where the first page starts. */
export const TOP = '~'
const TOP_SEQ = Number.MAX_SAFE_INTEGER
const ID = { msg: /^msg_[0-9a-z]+$/, evt: /^evt_[0-9a-z]+$/ }

/** A page's cursor is the id of its last row. @throws InvalidCursor for one that no page of this list gave out */
export function idBefore({ cursor }: PageRequest, of: keyof typeof ID): string {
  if (cursor === undefined) return TOP
  const id = Buffer.from(cursor, 'base64url').toString()
  if (!ID[of].test(id) || cursorOf(id) !== cursor) throw new InvalidCursor()
  return id
}

/** The same for rows that are in the order of their `seq`. */
export function seqBefore({ cursor }: PageRequest): number {
  if (cursor === undefined) return TOP_SEQ
  const seq = Number(Buffer.from(cursor, 'base64url').toString())
  if (!Number.isSafeInteger(seq) || seq <= 0 || cursorOf(seq) !== cursor) throw new InvalidCursor()
  return seq
}

/**
 * @param rows one more than the page holds, if there is one more
 * @param positionOf what the next page starts below
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
