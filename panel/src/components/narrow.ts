import { useSyncExternalStore } from 'react'

/** Below this rows become cards, and filters hide behind a button; the style sheets say the same. */
const media = matchMedia('(max-width: 760px)')

export function useIsNarrow(): boolean {
  return useSyncExternalStore(
    listener => {
      media.addEventListener('change', listener)
      return () => media.removeEventListener('change', listener)
    },
    () => media.matches,
  )
}
