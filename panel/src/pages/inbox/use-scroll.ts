import { useCallback, useEffect, useRef } from 'react'
import type { ChatEntry } from '../../api/types.ts'
import type { Log } from '../../api/use-log.ts'
import type { ShownLine } from './lines.ts'

/** Older messages are read when less than this is left above, in pixels. */
const READ_AHEAD = 800
/** Entries beside the visible ones that are kept up to date: some entries have no line of their own. */
const MARGIN = 50

/** Reads older messages as the conversation is scrolled, and until the sought message is there. */
export function useScroll(log: Log<ChatEntry>, lines: readonly ShownLine[], messageId: string | undefined) {
  const box = useRef<HTMLDivElement>(null)
  const sought = useRef<string | undefined>(undefined)
  const { hasMore, loadMore, onVisible, rows } = log
  const count = rows.length
  const onScroll = useCallback(() => {
    if (!box.current) return
    // The box is turned around in the style sheet: 0 is the newest message, and older ones are negative.
    const { scrollTop, scrollHeight, clientHeight } = box.current
    const below = -scrollTop
    const shown = below + clientHeight
    onVisible(Math.floor((below / scrollHeight) * count) - MARGIN, Math.ceil((shown / scrollHeight) * count) + MARGIN)
    if (hasMore && scrollHeight - shown < READ_AHEAD) loadMore()
  }, [hasMore, loadMore, onVisible, count])
  useEffect(onScroll, [onScroll])
  useEffect(() => {
    if (messageId === undefined || messageId === sought.current) {
      sought.current = messageId
      return
    }
    if (!lines.some(({ line }) => line.id === messageId)) {
      if (hasMore) loadMore()
      return
    }
    sought.current = messageId
    const element = box.current?.querySelector<HTMLElement>(`[data-message="${CSS.escape(messageId)}"]`)
    element?.scrollIntoView({ block: 'center' })
    element?.focus({ preventScroll: true })
  }, [messageId, lines, hasMore, loadMore])
  return { box, onScroll }
}
