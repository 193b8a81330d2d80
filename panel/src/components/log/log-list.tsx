// biome-ignore-all lint/a11y/useSemanticElements: a <table> cannot lay out absolutely positioned rows
// biome-ignore-all lint/a11y/useFocusableInteractive: the link in a row takes the focus, not the row
import { useWindowVirtualizer } from '@tanstack/react-virtual'
import {
  type CSSProperties,
  memo,
  type KeyboardEvent as ReactKeyboardEvent,
  type ReactNode,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
} from 'react'
import type { Log } from '../../api/use-log.ts'
import { useWords } from '../../i18n/i18n.tsx'
import { Problem } from '../feedback/problem.tsx'
import { Waiting } from '../feedback/waiting.tsx'
import { hasDialog, isTyping } from './keys.ts'
import classes from './log-list.module.css'
import { useIsNarrow } from './narrow.ts'
import type { Selection } from './selection.tsx'

/** The next page is read when fewer rows than this are left below the screen. */
const READ_AHEAD_ROWS = 40
const OVERSCAN = 4

interface LogListProps<T> {
  log: Log<T>
  label: string
  columns: readonly string[]
  /** CSS grid columns of a row on a wide screen. */
  template: string
  /** Heights of a row in pixels. */
  rowHeight: { wide: number; narrow: number }
  /** Must be a stable function: a new one redraws every row. */
  renderRow: (row: T) => ReactNode
  /** If given, rows can be selected. */
  selection?: Selection
  /** Shown instead of an empty list. */
  empty: ReactNode
}

/** A live list of any length. Only the visible rows are in the DOM. */
export function LogList<T extends { id: string }>(props: LogListProps<T>) {
  const { log, label, columns, template, rowHeight, renderRow, selection, empty } = props
  const words = useWords()
  const body = useRef<HTMLDivElement>(null)
  const [top, setTop] = useState(0)
  const isNarrow = useIsNarrow()
  const height = isNarrow ? rowHeight.narrow : rowHeight.wide

  const hasRows = log.rows.length > 0
  useEffect(() => {
    document.addEventListener('keydown', stepByLetter)
    return () => document.removeEventListener('keydown', stepByLetter)
  }, [])
  // biome-ignore lint/correctness/useExhaustiveDependencies: the list is rendered once there is a row
  useLayoutEffect(() => {
    const measure = () => {
      if (body.current) setTop(body.current.getBoundingClientRect().top + window.scrollY)
    }
    // Elements above the list may open, close or wrap.
    const observer = new ResizeObserver(measure)
    observer.observe(document.body)
    measure()
    return () => observer.disconnect()
  }, [hasRows, log.status])

  const virtual = useWindowVirtualizer({
    count: log.rows.length,
    estimateSize: () => height,
    overscan: OVERSCAN,
    scrollMargin: top,
  })
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new row height requires a new measurement
  useEffect(() => virtual.measure(), [height])

  useAnchor(log.rows, top, height)

  const items = virtual.getVirtualItems()
  const from = items[0]?.index ?? 0
  const to = items.at(-1)?.index ?? 0
  const { onVisible, loadMore, hasMore, moreError } = log
  useEffect(() => {
    onVisible(from, to)
    if (hasMore && !moreError && to >= log.rows.length - READ_AHEAD_ROWS) loadMore()
  }, [from, to, log.rows.length, hasMore, moreError, loadMore, onVisible])

  if (log.status === 'pending') return <Waiting />
  if (log.status === 'error' && !hasRows) return <Problem error={log.error} onRetry={log.retry} />
  if (!hasRows) {
    return (
      <>
        <Problem error={log.refreshError} text={words.common.outdated} />
        {empty}
      </>
    )
  }
  return (
    <div className={classes.table} style={{ '--columns': selection ? `18px ${template}` : template } as CSSProperties}>
      <Problem error={log.refreshError} text={words.common.outdated} />
      <div role="table" aria-label={label} aria-rowcount={hasMore ? -1 : log.rows.length + 1}>
        <div role="rowgroup" className={classes.headGroup}>
          <div role="row" className={classes.head}>
            {selection && <MarkAll selection={selection} rows={log.rows} />}
            {columns.map(column => (
              <div role="columnheader" key={column}>
                {column}
              </div>
            ))}
          </div>
        </div>
        <div
          role="rowgroup"
          ref={body}
          className={classes.body}
          style={{ height: virtual.getTotalSize() }}
          onKeyDown={moveBetweenRows}
        >
          {items.map(item => (
            <Row
              key={log.rows[item.index]!.id}
              row={log.rows[item.index]!}
              index={item.index}
              height={height}
              top={item.start - virtual.options.scrollMargin}
              renderRow={renderRow}
              isSelected={selection?.ids.has(log.rows[item.index]!.id)}
              onSelect={selection?.toggle}
            />
          ))}
        </div>
      </div>
      <div className={classes.foot}>
        {moreError ? (
          <Problem error={moreError} onRetry={loadMore} />
        ) : (
          <div role="status">{hasMore ? words.common.more : words.common.end}</div>
        )}
      </div>
    </div>
  )
}

interface RowProps<T> {
  row: T
  index: number
  height: number
  top: number
  renderRow: (row: T) => ReactNode
  /** Undefined if rows cannot be selected. */
  isSelected: boolean | undefined
  onSelect: ((id: string) => void) | undefined
}

/** Redraws only when the row or its position changes, not at every scroll step. */
const Row = memo(function Row<T extends { id: string }>(props: RowProps<T>) {
  const { row, index, height, top, renderRow, isSelected, onSelect } = props
  const words = useWords()
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      className={classes.row}
      data-selectable={isSelected !== undefined}
      style={{ height, transform: `translateY(${top}px)` }}
    >
      {isSelected !== undefined && (
        <div role="cell" className={classes.mark}>
          <input
            type="checkbox"
            checked={isSelected}
            aria-label={words.tools.selection.row(row.id)}
            onChange={() => onSelect?.(row.id)}
          />
        </div>
      )}
      {renderRow(row)}
    </div>
  )
}) as <T extends { id: string }>(props: RowProps<T>) => ReactNode

function MarkAll({ selection, rows }: { selection: Selection; rows: readonly { id: string }[] }) {
  const words = useWords()
  const areSelected = rows.every(({ id }) => selection.ids.has(id))
  return (
    <div role="columnheader" aria-label={words.tools.selection.column}>
      <input
        type="checkbox"
        aria-label={words.tools.selection.all}
        checked={areSelected}
        onChange={() =>
          selection.toggleAll(
            rows.map(({ id }) => id),
            areSelected,
          )
        }
      />
    </div>
  )
}

/** Keeps the visible rows in place when new rows arrive above them. */
function useAnchor<T extends { id: string }>(rows: readonly T[], top: number, height: number): void {
  const first = useRef<string | undefined>(undefined)
  useLayoutEffect(() => {
    const before = first.current
    first.current = rows[0]?.id
    if (before === undefined || before === first.current || window.scrollY <= top) return
    const added = rows.findIndex(({ id }) => id === before)
    if (added > 0) window.scrollBy({ top: added * height, behavior: 'instant' })
  }, [rows, top, height])
}

/** @param label shown next to the value on a narrow screen, which has no columns */
export function Cell({ children, area, label }: { children: ReactNode; area?: string; label?: string }) {
  return (
    <div role="cell" className={classes.cell} data-area={area}>
      {label && <span className={classes.cellLabel}>{label} </span>}
      {children}
    </div>
  )
}

/** The keys j and k move between rows. Without a focused row they start at the first visible one. x selects the row. */
function stepByLetter(event: KeyboardEvent): void {
  if (!['j', 'k', 'x'].includes(event.key) || isTyping(event) || hasDialog()) return
  const focused = document.activeElement?.closest('[role="row"]')
  if (event.key === 'x') {
    focused?.querySelector<HTMLElement>('input[type="checkbox"]')?.click()
    return
  }
  const links = [...document.querySelectorAll<HTMLElement>('[role="row"] [data-row-link]')].toSorted(
    (one, other) => rowIndex(one) - rowIndex(other),
  )
  const at = focused ? links.findIndex(link => focused.contains(link)) : -1
  const isBelowBar = (link: HTMLElement) => link.getBoundingClientRect().top > 100
  const next = at === -1 ? links.find(isBelowBar) : links[at + (event.key === 'j' ? 1 : -1)]
  next?.focus()
}

function rowIndex(element: Element): number {
  return Number(element.closest('[role="row"]')?.getAttribute('aria-rowindex'))
}

/** The arrow keys move from row to row, an alternative to tabbing through a long list. */
function moveBetweenRows(event: ReactKeyboardEvent<HTMLElement>): void {
  if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return
  const row = (event.target as HTMLElement).closest('[role="row"]')
  const index = row ? rowIndex(row) : Number.NaN
  const next = event.currentTarget.querySelector<HTMLElement>(
    `[aria-rowindex="${index + (event.key === 'ArrowDown' ? 1 : -1)}"] [data-row-link]`,
  )
  if (!row || !next) return
  event.preventDefault()
  next.focus()
}
