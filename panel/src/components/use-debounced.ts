import { useEffect, useState } from 'react'

const SEARCH_AFTER_MS = 180

/** The text once typing pauses. */
export function useDebounced(text: string): string {
  const [debounced, setDebounced] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setDebounced(text), SEARCH_AFTER_MS)
    return () => clearTimeout(timer)
  }, [text])
  return debounced
}
