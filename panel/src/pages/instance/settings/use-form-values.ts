import { useState } from 'react'

/**
 * The fields of a form whose data somebody else may change meanwhile. A field shows the newest data until the person changes
 * it, and again once the person restores it.
 * @returns `changed`: the fields to save, with the person's values. `onSaved` is called with them; later changes stay.
 */
export function useFormValues<T extends object>(data: T) {
  /** What each field showed before the person changed it, or what was saved since. */
  const [start, setStart] = useState<Partial<T>>({})
  const [typed, setTyped] = useState<Partial<T>>({})
  const changed = { ...typed }
  for (const field in typed) if (typed[field] === start[field]) delete changed[field]
  return {
    values: { ...data, ...changed },
    changed,
    change<K extends keyof T>(field: K, value: T[K]): void {
      if (!(field in changed)) setStart(now => ({ ...now, [field]: data[field] }))
      setTyped(now => ({ ...now, [field]: value }))
    },
    onSaved(saved: Partial<T>): void {
      setStart(now => ({ ...now, ...saved }))
    },
  }
}
