/** Reads one setting. `expected` names the valid values in the error. */
export type ReadSetting = <T>(name: string, fallback: T, expected: string, parse: (text: string) => T | undefined) => T

export function integerIn(min: number, max: number) {
  return (text: string) =>
    /^[0-9]+$/.test(text) && Number(text) >= min && Number(text) <= max ? Number(text) : undefined
}

export function numberIn(min: number, max: number) {
  return (text: string) =>
    /^[0-9]+(\.[0-9]+)?$/.test(text) && Number(text) >= min && Number(text) <= max ? Number(text) : undefined
}

export function parseHttpUrl(text: string): URL | undefined {
  const url = URL.parse(text)
  return url && (url.protocol === 'http:' || url.protocol === 'https:') ? url : undefined
}

/** Decodes a part of a URL. Null for a `%` that is not part of an escape, and for an escape that is not UTF-8. */
export function tryDecode(part: string): string | null {
  try {
    return decodeURIComponent(part)
  } catch {
    return null
  }
}
