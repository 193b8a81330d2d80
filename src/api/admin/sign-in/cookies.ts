import type { FastifyRequest } from 'fastify'

export interface Cookie {
  name: string
  /** The path over plain http. Over https it is always `/`, as `__Host-` requires. */
  path: string
  /** Matches a whole value. */
  format: RegExp
}

/** Only requests from pages of this site carry the cookie, and no script can read it. */
export function writeCookie(
  cookie: Cookie,
  { value, maxAge, isSecure }: { value: string; maxAge: number; isSecure: boolean },
): string {
  const path = isSecure ? '/' : cookie.path
  const secure = isSecure ? '; Secure' : ''
  return `${nameOf(cookie, isSecure)}=${value}; Path=${path}; Max-Age=${maxAge}; HttpOnly; SameSite=Strict${secure}`
}

/** The groups of `format` in the first value that has this format. */
export function readCookie(
  { headers }: Pick<FastifyRequest, 'headers'>,
  cookie: Cookie,
  isSecure: boolean,
): string[] | null {
  const start = `${nameOf(cookie, isSecure)}=`
  for (const pair of (headers.cookie ?? '').split(';')) {
    const text = pair.trim()
    const found = text.startsWith(start) ? cookie.format.exec(text.slice(start.length)) : null
    if (found !== null) return found.slice(1)
  }
  return null
}

/** Whether the browser uses https, directly or through a trusted proxy. Over http it would discard a `Secure` cookie. */
export function isHttps(request: FastifyRequest, publicUrl: URL | null): boolean {
  return publicUrl?.protocol === 'https:' || request.protocol === 'https'
}

/**
 * With the prefix `__Host-`, browsers accept a cookie only from this host, over https and for `/`. Another host of
 * the domain cannot plant such a cookie.
 */
function nameOf({ name }: Cookie, isSecure: boolean): string {
  return isSecure ? `__Host-${name}` : name
}
