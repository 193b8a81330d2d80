import { useEffect, useState } from 'react'

/** The part of the address after `#`. It stays while another page is being loaded. */
export function useFragment(): string {
  const [fragment, setFragment] = useState(() => window.location.hash.slice(1))
  useEffect(() => {
    // The person may paste another link into the tab.
    const read = () => setFragment(window.location.hash.slice(1))
    window.addEventListener('hashchange', read)
    return () => window.removeEventListener('hashchange', read)
  }, [])
  return fragment
}
