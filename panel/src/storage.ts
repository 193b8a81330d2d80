type Area = 'localStorage' | 'sessionStorage'

/** Null too if the browser blocks storage. */
export function readStored(area: Area, key: string): string | null {
  try {
    return globalThis[area].getItem(key)
  } catch {
    return null
  }
}

/**
 * Stores a value; null removes it.
 * @returns false if the browser blocks storage. Then the value holds until the page is left
 */
export function store(area: Area, key: string, value: string | null): boolean {
  try {
    if (value === null) globalThis[area].removeItem(key)
    else globalThis[area].setItem(key, value)
    return true
  } catch {
    return false
  }
}
