import { Button } from '@mantine/core'
import { type ReactNode, useCallback, useMemo, useState } from 'react'
import { useWords } from '../../i18n/i18n.tsx'
import classes from './selection.module.css'

/** The rows of a list that a person has marked. */
export interface Selection {
  ids: ReadonlySet<string>
  toggle: (id: string) => void
  toggleAll: (ids: readonly string[], areMarked: boolean) => void
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
    (all: readonly string[], areMarked: boolean) => (areMarked ? remove(all) : add(all)),
    [add, remove],
  )
  return useMemo(() => ({ ids, toggle, toggleAll, remove }), [ids, toggle, toggleAll, remove])
}

interface SelectionBarProps {
  selection: Selection
  /** The actions for the marked rows. */
  children: ReactNode
}

/** Stays in view while rows are marked. */
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

/** Runs `act` for one row after the other. If one row is refused, the others still run, and the result counts the failures. */
export async function forEachRow<T extends { id: string }>(
  rows: readonly T[],
  act: (row: T) => Promise<unknown>,
): Promise<{ done: string[]; problem: unknown; failed: number }> {
  const done: string[] = []
  const problems: unknown[] = []
  for (const row of rows) {
    try {
      await act(row)
      done.push(row.id)
    } catch (error) {
      problems.push(error)
    }
  }
  return { done, problem: problems[0], failed: problems.length }
}
