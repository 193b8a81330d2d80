import { type QueryClient, useInfiniteQuery, useQueryClient } from '@tanstack/react-query'
import { type RefObject, useCallback, useEffect, useMemo, useRef, useState } from 'react'
import type { Query } from './client.ts'
import { onLogChange } from './live.ts'
import {
  PAGE_SIZE,
  type Pages,
  putAgain,
  type Range,
  type ReadPage,
  type Row,
  readAgain,
  rowsBetween,
  rowsOf,
} from './log-pages.ts'
import { listPage } from './queries.ts'
import type { Page } from './types.ts'

/** The shortest interval between two reads of a busy list. */
const REFRESH_EVERY_MS = 400
/** `find` reads this many pages. A browser would draw the rows of hundreds of pages for minutes. */
const MAX_FIND_PAGES = 20
/** A failed read is repeated after this time. Only a second failure is shown. */
const RETRY_MS = 2_000

export interface Log<T> {
  rows: T[]
  status: 'pending' | 'error' | 'success'
  error: Error | null
  /** Why the last two reads after a change failed. The rows may be out of date. */
  refreshError: Error | null
  hasMore: boolean
  /** Why a further page could not be read. Until the list changes, only a person's click may try again. */
  moreError: Error | null
  loadMore: () => void
  retry: () => void
  /** The range of visible rows. They are kept up to date. */
  onVisible: (from: number, to: number) => void
  /**
   * Reads further pages until one has the row, and then shows them all. `missing`: the list does not have it.
   * `further`: some pages were read and shown without it, and the list has more.
   */
  find: (isSought: (row: T) => boolean, signal: AbortSignal) => Promise<Found>
}

export type Found = 'found' | 'missing' | 'further'
type Key = readonly unknown[]
type Current = RefObject<WeakSet<Row>>

/**
 * A live list, newest first, read page by page as it is scrolled. When a change in the instance `instanceId` (null: in
 * the list of instances) is reported, the visible rows and the newest ones are read again, and the other rows when they become visible.
 */
export function useLog<T extends Row>(name: string, path: string, query: Query, instanceId: string | null): Log<T> {
  const client = useQueryClient()
  const key = useMemo(() => ['log', name, path, query], [name, path, query])
  const visible = useRef({ from: 0, to: 0 })
  /** The rows that were read after the last change. */
  const current = useRef(new WeakSet<Row>())
  const read = useCallback<ReadPage<T>>(
    async (cursor, signal) => {
      const { current: readNow } = current
      const page = await listPage<T>(path, { ...query, limit: PAGE_SIZE, cursor }, signal)
      for (const row of page.data) readNow.add(row)
      return page
    },
    [path, query],
  )

  const list = useInfiniteQuery({
    queryKey: key,
    queryFn: ({ pageParam, signal }) => read(pageParam, signal),
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
  const { requestRefresh, refreshError } = useRefresh(
    instanceId,
    useCallback(() => refresh(client, key, visible.current, read, current), [client, key, read]),
    current,
  )

  const rows = useMemo(() => rowsOf(list.data?.pages ?? []), [list.data])
  const { hasNextPage, isFetching, fetchNextPage } = list
  return {
    rows,
    // The empty result of an earlier filter says nothing about this filter.
    status: list.isPlaceholderData && rows.length === 0 ? 'pending' : list.status,
    error: list.error,
    refreshError,
    hasMore: hasNextPage,
    moreError: list.isFetchNextPageError ? list.error : null,
    loadMore: useCallback(() => {
      if (hasNextPage && !isFetching) void fetchNextPage()
    }, [hasNextPage, isFetching, fetchNextPage]),
    retry: useCallback(() => void list.refetch(), [list.refetch]),
    onVisible: useCallback(
      (from, to) => {
        visible.current = { from, to }
        const shown = client.getQueryData<Pages<T>>(key)
        if (shown && rowsBetween(shown, visible.current).some(row => !current.current.has(row))) requestRefresh()
      },
      [client, key, requestRefresh],
    ),
    find: useCallback((isSought, signal) => find(client, key, read, isSought, signal), [client, key, read]),
  }
}

/**
 * Runs `read` after a change, one run after the other.
 * @param current is emptied by a change
 * @returns `requestRefresh` requests a run without a change
 */
function useRefresh(instanceId: string | null, read: () => Promise<void>, current: Current) {
  const request = useRef(() => {})
  const [failed, setFailed] = useState<{ read: () => Promise<void>; error: Error } | null>(null)
  useEffect(() => {
    let due: ReturnType<typeof setTimeout> | undefined
    let running = false
    let again = false
    let failures = 0
    async function run(): Promise<void> {
      due = undefined
      running = true
      again = false
      const error = await read().then(
        () => null,
        (reason: Error) => reason,
      )
      failures = error ? failures + 1 : 0
      if (failures !== 1) setFailed(error && { read, error })
      running = false
      if (failures === 1) due = setTimeout(run, RETRY_MS)
      else if (again) due = setTimeout(run, REFRESH_EVERY_MS)
    }
    request.current = () => {
      if (running) again = true
      else due ??= setTimeout(run, REFRESH_EVERY_MS)
    }
    const stop = onLogChange(instanceId, () => {
      current.current = new WeakSet()
      request.current()
    })
    return () => {
      stop()
      clearTimeout(due)
    }
  }, [read, instanceId, current])
  return {
    requestRefresh: useCallback(() => request.current(), []),
    // A failure of another filter says nothing about this list.
    refreshError: failed?.read === read ? failed.error : null,
  }
}

async function refresh<T extends Row>(
  client: QueryClient,
  key: Key,
  visible: Range,
  read: ReadPage<T>,
  current: Current,
): Promise<void> {
  const before = client.getQueryData<Pages<T>>(key)
  const first = before?.pages[0]
  if (!before || !first) {
    // The first read of the list may have failed, for example while the service was away.
    if (client.getQueryState(key)?.status === 'error') await client.refetchQueries({ queryKey: key, exact: true })
    return
  }
  const fresh = await readAgain(before, visible, read)
  const put = () =>
    client.setQueryData<Pages<T>>(key, now => {
      if (!now || now.pages[0] !== first) return now
      return fresh ? putAgain(now, fresh, current.current) : { pages: [], pageParams: [] }
    })
  const loading = client.getQueryCache().find({ queryKey: key, exact: true })?.promise
  put()
  // A page that is still loading will be added to the old list, so the fresh rows are put in again afterwards.
  await loading?.catch(() => undefined)
  put()
  if (!fresh) await client.resetQueries({ queryKey: key, exact: true })
}

async function find<T extends Row>(
  client: QueryClient,
  key: Key,
  read: ReadPage<T>,
  isSought: (row: T) => boolean,
  signal: AbortSignal,
): Promise<Found> {
  const found: Pages<T> = { pages: [], pageParams: [] }
  let cursor = client.getQueryData<Pages<T>>(key)?.pages.at(-1)?.nextCursor
  const isFound = () => found.pages.at(-1)?.data.some(isSought) ?? false
  while (!isFound() && found.pages.length < MAX_FIND_PAGES) {
    if (!cursor) return 'missing'
    const page = await read(cursor, signal)
    found.pages.push(page)
    found.pageParams.push(cursor)
    cursor = page.nextCursor
  }
  await client.cancelQueries({ queryKey: key, exact: true })
  client.setQueryData<Pages<T>>(key, now => {
    // Some of these pages may have been loaded in the meantime.
    const from = found.pageParams.indexOf(now?.pages.at(-1)?.nextCursor ?? undefined)
    if (!now || from === -1) return now
    return {
      pages: [...now.pages, ...found.pages.slice(from)],
      pageParams: [...now.pageParams, ...found.pageParams.slice(from)],
    }
  })
  if (isFound()) return 'found'
  return cursor ? 'further' : 'missing'
}
