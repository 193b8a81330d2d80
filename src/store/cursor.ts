import { InvalidCursor } from './errors.ts'
import type { Page, PageRequest } from './store.ts'

/** Above every `seq`: where the first page starts. */
const TOP = Number.MAX_SAFE_INTEGER

/** A page's cursor is the `seq` of its last row. @throws InvalidCursor for one that we did not give out */
export function seqBefore(page: PageRequest): number {
  if (page.cursor === undefined) return TOP
  const seq = Number(Buffer.from(page.cursor, 'base64url').toString())
  if (!Number.isSafeInteger(seq) || seq <= 0 || cursorOf(seq) !== page.cursor) throw new InvalidCursor()
  return seq
}

function cursorOf(seq: number): string {
  return Buffer.from(String(seq)).toString('base64url')
}

/** @param rows one more than the page holds, if there is one more */
export function toPage<R extends { seq: number }, T>(rows: readonly R[], limit: number, map: (row: R) => T): Page<T> {
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  const more = rows.length > limit && last !== undefined
  return {
    data: shown.map(map),
    nextCursor: more ? cursorOf(last.seq) : null,
  }
}
