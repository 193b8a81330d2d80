/**
 * On every answer. The answers are data: no page may frame them, run them or guess their type. Nothing is cached, for
 * they hold tokens and messages. Written out instead of computed by a plugin, for they are set on every call.
 */
export const SECURITY_HEADERS = {
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
} as const
