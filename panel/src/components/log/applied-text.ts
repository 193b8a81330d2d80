import { useEffect, useRef, useState } from 'react'

interface AppliedText {
  text: string
  setText: (text: string) => void
  /** Applies this text at once. */
  apply: (text: string) => void
}

/**
 * The text of a field that filters a list: it is applied once typing pauses. An outside change of the value, such as
 * "clear filters", replaces the text.
 * @param afterMs null: only `apply` applies it
 */
export function useAppliedText(value: string, onApply: (text: string) => void, afterMs: number | null): AppliedText {
  const [text, setText] = useState(value)
  /** Texts that were applied here and have not come back as `value`. The person may have typed more since. */
  const applied = useRef<string[]>([])
  function apply(typed: string): void {
    applied.current.push(typed)
    onApply(typed)
  }
  // biome-ignore lint/correctness/useExhaustiveDependencies: only a new text or value starts the wait
  useEffect(() => {
    const typed = text.trim()
    if (afterMs === null || typed === value) return
    const timer = setTimeout(() => apply(typed), afterMs)
    return () => clearTimeout(timer)
  }, [text, value])
  // biome-ignore lint/correctness/useExhaustiveDependencies: only a new value may replace the text
  useEffect(() => {
    const isOwn = applied.current.includes(value)
    applied.current = isOwn ? applied.current.slice(applied.current.indexOf(value) + 1) : []
    if (!isOwn && afterMs !== null && value !== text.trim()) setText(value)
  }, [value])
  return { text, setText, apply }
}
