import { useEffect, useState } from 'react'

const SEARCH_AFTER_MS = 180

/** The text once typing pauses. */
export function usePaused(text: string): string {
  const [paused, setPaused] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setPaused(text), SEARCH_AFTER_MS)
    return () => clearTimeout(timer)
  }, [text])
  return paused
}
