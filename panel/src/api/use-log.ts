import { type InfiniteData, useInfiniteQuery, useQueryClient } from '@tanstack/react-query'
import { useCallback, useEffect, useMemo, useRef } from 'react'
import type { Query } from './client.ts'
import { onLogChange } from './live.ts'
import { listPage } from './queries.ts'
import type { Page } from './types.ts'

const PAGE_SIZE = 100
/** A list that grew by more pages than this since it was last read is read from its start. */
const MAX_CATCH_UP_PAGES = 3
/** The shortest interval between two reads of a busy list. */
const REFRESH_EVERY_MS = 400

/** A chat has no ID: its name identifies it. */
type Row = { id: string } | { chat: string }

function keyOf(row: Row): string {
  return 'id' in row ? row.id : row.chat
}

export interface Log<T> {
  rows: T[]
  status: 'pending' | 'error' | 'success'
  error: Error | null
  hasMore: boolean
  loadMore: () => void
  retry: () => void
  /** The range of visible rows. They are kept up to date. */
  onVisible: (from: number, to: number) => void
}

type Pages<T> = InfiniteData<Page<T>, string | undefined>

/**
 * A live list, newest first, read page by page as it is scrolled. When a change of `instanceId` (null: the list of
 * instances) is reported, the visible rows and the newest ones are read again.
 */
export function useLog<T extends Row>(name: string, path: string, query: Query, instanceId: string | null): Log<T> {
  const client = useQueryClient()
  const key = useMemo(() => ['log', name, path, query], [name, path, query])
  const visible = useRef({ from: 0, to: 0 })

  const list = useInfiniteQuery({
    queryKey: key,
    queryFn: ({ pageParam, signal }) => listPage<T>(path, { ...query, limit: PAGE_SIZE, cursor: pageParam }, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: Page<T>) => page.nextCursor ?? undefined,
    staleTime: Number.POSITIVE_INFINITY,
    // Comparing a hundred thousand rows at every page would cost more than drawing thirty of them.
    structuralSharing: false,
    // Returning to a list of many pages must not read them all again.
    gcTime: 0,
    // After a change of the search or filter, the old rows stay until the new ones arrive.
    placeholderData: (before, earlier) => (earlier?.queryKey[1] === name ? before : undefined),
  })

  const refresh = useCallback(async () => {
    const before = client.getQueryData<Pages<T>>(key)
    const first = before?.pages[0]
    if (!before || !first) {
      // A list whose first read failed, for example while the service was away.
      if (client.getQueryState(key)?.status === 'error') await client.refetchQueries({ queryKey: key, exact: true })
      return
    }
    const read = (cursor?: string) => listPage<T>(path, { ...query, limit: PAGE_SIZE, cursor })
    const fresh = await catchUp(first, read)
    const shown = pagesBetween(before, visible.current).filter(index => index > 0)
    const others = await Promise.all(shown.map(async index => [index, await read(before.pageParams[index])] as const))
    client.setQueryData<Pages<T>>(key, now => {
      if (!now || now.pages[0] !== first) return now
      if (!fresh) return { pages: [], pageParams: [] } as Pages<T>
      const pages = [...now.pages]
      pages[0] = fresh
      for (const [index, page] of others) {
        if (pages[index]) pages[index] = { ...page, nextCursor: pages[index].nextCursor }
      }
      return { ...now, pages }
    })
    if (!fresh) await client.resetQueries({ queryKey: key, exact: true })
  }, [client, key, path, query])

  useEffect(() => {
    let due: ReturnType<typeof setTimeout> | undefined
    let running = false
    let again = false
    async function run(): Promise<void> {
      due = undefined
      running = true
      again = false
      await refresh().catch(() => undefined)
      running = false
      if (again) due = setTimeout(run, REFRESH_EVERY_MS)
    }
    const stop = onLogChange(instanceId, () => {
      if (running) again = true
      else due ??= setTimeout(run, REFRESH_EVERY_MS)
    })
    return () => {
      stop()
      clearTimeout(due)
    }
  }, [refresh, instanceId])

  const rows = useMemo(() => list.data?.pages.flatMap(page => page.data) ?? [], [list.data])
  const { hasNextPage, isFetching, fetchNextPage } = list
  return {
    rows,
    status: list.status,
    error: list.error,
    hasMore: hasNextPage,
    loadMore: useCallback(() => {
      if (hasNextPage && !isFetching) void fetchNextPage()
    }, [hasNextPage, isFetching, fetchNextPage]),
    retry: useCallback(() => void list.refetch(), [list.refetch]),
    onVisible: useCallback((from, to) => {
      visible.current = { from, to }
    }, []),
  }
}

/**
 * The current first page, followed by the known rows below it. Null if too many new rows came in between. Known rows in the
 * range of the new page that are missing there have left the list.
 */
async function catchUp<T extends Row>(
  before: Page<T>,
  read: (cursor?: string) => Promise<Page<T>>,
): Promise<Page<T> | null> {
  const page = await read()
  const rows = page.data
  let { nextCursor } = page
  const known = new Set(before.data.map(keyOf))
  for (let pages = 1; nextCursor !== null && known.size > 0 && !rows.some(row => known.has(keyOf(row))); pages += 1) {
    if (pages > MAX_CATCH_UP_PAGES) return null
    const more = await read(nextCursor)
    rows.push(...more.data)
    nextCursor = more.nextCursor
  }
  if (nextCursor === null) return { data: rows, nextCursor: before.nextCursor === null ? null : before.nextCursor }
  const end = rows.at(-1)
  const last = before.data.findLastIndex(row => end && keyOf(row) === keyOf(end))
  const below =
    last === -1
      ? before.data.filter(row => !rows.some(fresh => keyOf(fresh) === keyOf(row)))
      : before.data.slice(last + 1)
  return { data: [...rows, ...below], nextCursor: before.nextCursor }
}

function pagesBetween<T>({ pages }: Pages<T>, { from, to }: { from: number; to: number }): number[] {
  const found: number[] = []
  let start = 0
  for (const [index, page] of pages.entries()) {
    const end = start + page.data.length
    if (end > from && start <= to) found.push(index)
    start = end
  }
  return found
}
