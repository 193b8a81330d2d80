/**
 * On every answer: no page may frame it, run it or guess its type, and nothing is cached, for answers hold tokens and
 * messages. Few, and written out instead of computed by a plugin, for they are set on every call.
 */
export const SECURITY_HEADERS = {
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
} as const

/** On pages too: for browsers that do not know `frame-ancestors`, and for the links in a page. */
export const PAGE_HEADERS = {
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
} as const
