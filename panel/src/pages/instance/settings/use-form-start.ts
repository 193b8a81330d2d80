import { useState } from 'react'

/**
 * The data that a form starts with. Newer data, as somebody else saved it, replaces it only until the person changes the form.
 * @returns `key` and `onChange` for the form, and `onSaved` for its success
 */
export function useFormStart<T>(data: T) {
  const [kept, setKept] = useState<{ data: T } | null>(null)
  const start = kept === null ? data : kept.data
  return {
    start,
    key: JSON.stringify(start),
    onChange: () => setKept(now => now ?? { data }),
    onSaved: () => setKept(null),
  }
}
