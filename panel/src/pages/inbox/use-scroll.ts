import { useCallback, useEffect, useRef, useState } from 'react'
import type { ChatEntry } from '../../api/types.ts'
import type { Log } from '../../api/use-log.ts'
import type { ShownLine } from './lines.ts'

/** Older messages are read when less than this is left above, in pixels. */
const READ_AHEAD = 800
/** Entries beside the visible ones that are kept up to date: some entries have no line of their own. */
const MARGIN = 50

/**
 * Reads older messages as the conversation is scrolled, and shows the sought message.
 * @param sentId the message that was sent last from this page. It is the newest, and is shown
 */
export function useScroll(
  log: Log<ChatEntry>,
  lines: readonly ShownLine[],
  messageId: string | undefined,
  sentId: string | undefined,
) {
  const box = useRef<HTMLDivElement>(null)
  const shown = useRef<string | undefined>(undefined)
  const { hasMore, moreError, loadMore, onVisible, rows } = log
  const count = rows.length
  const isThere = lines.some(({ line }) => line.id === messageId)
  const search = useSearch(log, isThere || shown.current === messageId ? undefined : messageId)
  const onScroll = useCallback(() => {
    if (!box.current) return
    // The box is turned around in the style sheet: 0 is the newest message, and older ones are negative.
    const { scrollTop, scrollHeight, clientHeight } = box.current
    const below = -scrollTop
    const above = scrollHeight - below - clientHeight
    const to = Math.ceil(((below + clientHeight) / scrollHeight) * count) + MARGIN
    onVisible(Math.floor((below / scrollHeight) * count) - MARGIN, to)
    if (hasMore && !moreError && above < READ_AHEAD) loadMore()
  }, [hasMore, moreError, loadMore, onVisible, count])
  useEffect(onScroll, [onScroll])
  useEffect(() => {
    if (sentId !== undefined) box.current?.scrollTo({ top: 0 })
  }, [sentId])
  useEffect(() => {
    if (messageId !== undefined && messageId !== shown.current) {
      if (!isThere) return
      const element = box.current?.querySelector<HTMLElement>(`[data-message="${CSS.escape(messageId)}"]`)
      element?.scrollIntoView({ block: 'center' })
      element?.focus({ preventScroll: true })
    }
    shown.current = messageId
  }, [messageId, isThere])
  return { box, onScroll, search }
}

export interface Search {
  /** Null if there is nothing to show. */
  state: 'running' | 'missing' | 'further' | Error | null
  searchFurther: () => void
}

/** Reads older messages until the sought one is there. After many pages a person must ask for more. */
function useSearch({ status, rows, find }: Log<ChatEntry>, messageId: string | undefined): Search {
  const [state, setState] = useState<Search['state']>(null)
  const running = useRef<AbortController>(null)
  const isRead = status === 'success' || rows.length > 0
  const start = useCallback(() => {
    setState(null)
    if (messageId === undefined || !isRead) return
    const begun = new AbortController()
    running.current = begun
    const { signal } = begun
    setState('running')
    find(({ id }) => id === messageId, signal).then(
      found => signal.aborted || setState(found === 'found' ? null : found),
      (error: Error) => signal.aborted || setState(error),
    )
  }, [messageId, isRead, find])
  useEffect(() => {
    start()
    return () => running.current?.abort()
  }, [start])
  return { state, searchFurther: start }
}
