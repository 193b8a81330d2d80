import { type InfiniteData, replaceEqualDeep } from '@tanstack/react-query'
import type { Page } from './types.ts'

/** Pages that are read again must be read with the same size. */
export const PAGE_SIZE = 100
/** A list that grew by more pages than this since it was last read is read from its start. */
const MAX_CATCH_UP_PAGES = 3
/** If the first page has grown beyond this, rows that are off screen are cut from the list. */
const MAX_FIRST_PAGE_ROWS = 3 * PAGE_SIZE

/** A chat has no ID: its name identifies it. */
export type Row = { id: string } | { chat: string }

export type Pages<T> = InfiniteData<Page<T>, string | undefined>

/** Positions in the list, both included. */
export interface Range {
  from: number
  to: number
}

export type ReadPage<T> = (cursor?: string, signal?: AbortSignal) => Promise<Page<T>>

/** The pages of a list that were read again. */
interface Fresh<T> {
  /** The newest rows, followed by the known ones below them. */
  first: Page<T>
  /** True if no other page is kept. */
  isCut: boolean
  /** Visible pages other than the first, by index. */
  others: ReadonlyMap<number, Page<T>>
}

function keyOf(row: Row): string {
  return 'id' in row ? row.id : row.chat
}

/** All rows. A row that moved while the pages were read may be on two of them: the first one counts. */
export function rowsOf<T extends Row>(pages: readonly Page<T>[]): T[] {
  const rows = pages.flatMap(page => page.data)
  const byKey = new Map<string, T>()
  for (const row of rows) if (!byKey.has(keyOf(row))) byKey.set(keyOf(row), row)
  return byKey.size === rows.length ? rows : [...byKey.values()]
}

/** Reads the newest and the visible rows again. Null if too many new rows came in since. */
export async function readAgain<T extends Row>(
  before: Pages<T>,
  visible: Range,
  read: ReadPage<T>,
): Promise<Fresh<T> | null> {
  const newest = await catchUp(before.pages[0]!, visible, read)
  if (!newest) return null
  if (newest.isCut) return { ...newest, others: new Map() }
  const shown = pagesBetween(before, visible).filter(index => index > 0)
  const others = await Promise.all(shown.map(async index => [index, await read(before.pageParams[index])] as const))
  return { ...newest, others: new Map(others) }
}

/**
 * Puts pages that were read again into the list. Rows that did not change stay the same objects.
 * @param current the rows that were read after the last change
 */
export function putAgain<T extends Row>(
  now: Pages<T>,
  { first, isCut, others }: Fresh<T>,
  current: WeakSet<Row>,
): Pages<T> {
  const fresh = new Map([[0, first], ...others])
  const known = new Map([...fresh.keys()].flatMap(index => now.pages[index]?.data ?? []).map(row => [keyOf(row), row]))
  const taken = new Set<string>()
  const take = (row: T) => taken.size !== taken.add(keyOf(row)).size
  const keep = (row: T) => {
    const kept = replaceEqualDeep(known.get(keyOf(row)), row)
    if (current.has(row)) current.add(kept)
    return kept
  }
  const again = new Map<number, T[]>()
  for (const [index, { data }] of fresh) again.set(index, data.filter(take).map(keep))
  if (isCut) return { pages: [{ ...first, data: again.get(0)! }], pageParams: now.pageParams.slice(0, 1) }
  const pages = now.pages.map((page, index) => {
    const data = again.get(index)
    if (data) return { data, nextCursor: index === 0 ? first.nextCursor : page.nextCursor }
    // A taken row has moved to a page that was read again.
    const isTaken = (row: T) => taken.has(keyOf(row))
    return page.data.some(isTaken) ? { ...page, data: page.data.filter(row => !isTaken(row)) } : page
  })
  return { ...now, pages }
}

/**
 * The current first page, followed by the known rows below it. Null if too many new rows came in between. Known rows in the
 * range of the new page that are missing there have left the list.
 */
async function catchUp<T extends Row>(
  before: Page<T>,
  visible: Range,
  read: ReadPage<T>,
): Promise<Pick<Fresh<T>, 'first' | 'isCut'> | null> {
  const page = await read()
  const rows = [...page.data]
  let { nextCursor } = page
  const known = new Set(before.data.map(keyOf))
  const shownRows = visible.from < before.data.length ? Math.min(visible.to + 1, before.data.length) : 0
  for (let pages = 1; nextCursor !== null; pages += 1) {
    const isJoined = known.size === 0 || rows.some(row => known.has(keyOf(row)))
    if (isJoined && (rows.length >= shownRows || pages > MAX_CATCH_UP_PAGES)) break
    if (pages > MAX_CATCH_UP_PAGES) return null
    const more = await read(nextCursor)
    rows.push(...more.data)
    nextCursor = more.nextCursor
  }
  if (nextCursor === null) return { first: { data: rows, nextCursor: before.nextCursor }, isCut: false }
  if (before.data.length > MAX_FIRST_PAGE_ROWS && visible.to < rows.length)
    return { first: { data: rows, nextCursor }, isCut: true }
  const end = rows.at(-1)
  const last = before.data.findLastIndex(row => end && keyOf(row) === keyOf(end))
  const fresh = new Set(rows.map(keyOf))
  const below = before.data.slice(last + 1).filter(row => !fresh.has(keyOf(row)))
  return { first: { data: [...rows, ...below], nextCursor: before.nextCursor }, isCut: false }
}

export function rowsBetween<T>({ pages }: Pages<T>, { from, to }: Range): T[] {
  let start = 0
  return pages.flatMap(({ data }) => {
    const rows = data.slice(Math.max(0, from - start), Math.max(0, to + 1 - start))
    start += data.length
    return rows
  })
}

function pagesBetween<T>({ pages }: Pages<T>, { from, to }: Range): number[] {
  const found: number[] = []
  let start = 0
  for (const [index, page] of pages.entries()) {
    const end = start + page.data.length
    if (end > from && start <= to) found.push(index)
    start = end
  }
  return found
}
