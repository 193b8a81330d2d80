/** Reads one setting. `expected` names the valid values in the error. */
export type ReadSetting = <T>(name: string, fallback: T, expected: string, parse: (text: string) => T | undefined) => T

/** Browsers and `fetch` refuse to connect to these ports: https://fetch.spec.whatwg.org/#port-blocking */
export const BLOCKED_PORTS: ReadonlySet<string> = new Set(
  (
    '0 1 7 9 11 13 15 17 19 20 21 22 23 25 37 42 43 53 69 77 79 87 95 101 102 103 104 109 110 111 113 115 117 119 123 135 137 139 143 ' +
    '161 179 389 427 465 512 513 514 515 526 530 531 532 540 548 554 556 563 587 601 636 989 990 993 995 1719 1720 1723 2049 3659 ' +
    '4045 4190 5060 5061 6000 6566 6665 6666 6667 6668 6669 6679 6697 10080'
  ).split(' '),
)

export function integerIn(min: number, max: number) {
  return (text: string) =>
    /^[0-9]+$/.test(text) && Number(text) >= min && Number(text) <= max ? Number(text) : undefined
}

/** @throws Error if browsers block the port */
export function parseServicePort(text: string): number | undefined {
  const port = integerIn(0, 65_535)(text)
  if (port && BLOCKED_PORTS.has(String(port)))
    throw new Error(`PORT cannot be ${port}: browsers and other HTTP clients refuse to connect to this port.`)
  return port
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
