import { useSyncExternalStore } from 'react'

/** Below this width rows become cards, and filters hide behind a button. The style sheets use the same width. */
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
