/** The schemes of the proxies that an instance may use, and their default ports. */
const PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443, 'socks5:': 1080 }
export const MAX_PROXY_URL_LENGTH = 2_048
/** A user name or password may have this many bytes (RFC 1929). */
const MAX_SOCKS_BYTES = 255

/** @returns why the text is not the URL of a proxy; null if it is one */
export function findProxyUrlFault(text: string): string | null {
  const url = text.length <= MAX_PROXY_URL_LENGTH ? URL.parse(text) : null
  if (url === null || PORTS[url.protocol] === undefined || url.hostname === '')
    return '"url" must be an http, https or socks5 URL, such as "socks5://user:password@proxy.example:1080", or null.'
  if ((url.pathname !== '' && url.pathname !== '/') || url.search !== '' || url.hash !== '')
    return '"url" must not have a path, a query or a fragment after the proxy\'s host and port.'
  const login = loginOf(url)
  if (login === null) return 'The user name or password in "url" is not percent-encoded: write "%" as "%25".'
  const isTooLong = [login.user, login.password].some(text => Buffer.byteLength(text) > MAX_SOCKS_BYTES)
  if (isTooLong) return 'The user name and the password in "url" must have at most 255 bytes each.'
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they would end the header or the field
  if (/[\u0000-\u001f]/.test(login.user + login.password)) return '"url" must not contain control characters.'
  if (login.user === '' && login.password !== '') return 'A password in "url" needs a user name.'
  return null
}

export function proxyPort(url: URL): number {
  return url.port === '' ? (PORTS[url.protocol] ?? 0) : Number(url.port)
}

/** The URL without its password, for answers and for the audit. */
export function withoutPassword(text: string): string {
  const url = new URL(text)
  url.password = ''
  return url.href.replace(/\/$/, '')
}

function loginOf({ username, password }: URL): { user: string; password: string } | null {
  try {
    return { user: decodeURIComponent(username), password: decodeURIComponent(password) }
  } catch {
    return null
  }
}
