import { useEffect } from 'react'

/** Names the tab: the page first, because a narrow tab shows only the beginning. */
export function useTitle(...parts: (string | undefined)[]): void {
  const title = [...parts.filter(Boolean), 'Pombal'].join(' · ')
  useEffect(() => {
    document.title = title
  }, [title])
}
