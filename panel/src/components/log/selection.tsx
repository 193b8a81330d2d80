import { Button } from '@mantine/core'
import { type ReactNode, useCallback, useMemo, useState } from 'react'
import { useWords } from '../../i18n/i18n.tsx'
import classes from './selection.module.css'

/** The rows of a list that a person has selected. */
export interface Selection {
  ids: ReadonlySet<string>
  toggle: (id: string) => void
  toggleAll: (ids: readonly string[], areSelected: boolean) => void
  remove: (ids: readonly string[]) => void
}

export function useSelection(): Selection {
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set())
  const add = useCallback((more: readonly string[]) => setIds(before => new Set([...before, ...more])), [])
  const remove = useCallback(
    (gone: readonly string[]) => setIds(before => new Set([...before].filter(id => !gone.includes(id)))),
    [],
  )
  const toggle = useCallback(
    (id: string) =>
      setIds(before =>
        before.has(id) ? new Set([...before].filter(other => other !== id)) : new Set([...before, id]),
      ),
    [],
  )
  const toggleAll = useCallback(
    (all: readonly string[], areSelected: boolean) => (areSelected ? remove(all) : add(all)),
    [add, remove],
  )
  return useMemo(() => ({ ids, toggle, toggleAll, remove }), [ids, toggle, toggleAll, remove])
}

interface SelectionBarProps {
  selection: Selection
  /** The actions for the selected rows. */
  children: ReactNode
}

/** Stays in view while rows are selected. */
export function SelectionBar({ selection, children }: SelectionBarProps) {
  const words = useWords()
  if (selection.ids.size === 0) return null
  return (
    <section className={classes.bar} aria-label={words.tools.selection.title}>
      <strong role="status">{words.tools.selection.count(selection.ids.size)}</strong>
      {children}
      <Button variant="subtle" size="compact-sm" onClick={() => selection.remove([...selection.ids])}>
        {words.tools.selection.clear}
      </Button>
    </section>
  )
}

/**
 * Runs `act` for one row after the other, until `signal` is aborted. If one row is refused, the others still run.
 * @param onDone is called for each row that was not refused
 * @returns the numbers of rows that were done, that were refused, and that were not begun; and the first problem
 */
export async function forEachRow<T extends { id: string }>(
  rows: readonly T[],
  act: (row: T) => Promise<unknown>,
  onDone: (id: string) => void,
  signal: AbortSignal,
): Promise<{ done: number; problem: unknown; failed: number; left: number }> {
  let done = 0
  const problems: unknown[] = []
  for (const row of rows) {
    if (signal.aborted) break
    try {
      await act(row)
      done += 1
      onDone(row.id)
    } catch (error) {
      problems.push(error)
    }
  }
  return { done, problem: problems[0], failed: problems.length, left: rows.length - done - problems.length }
}
