export const HEADERS = {
  'X-Request-Id': {
    description:
      "Identifies the request in the log: the caller's own `X-Request-Id` (1–128 visible ASCII characters), else a new one.",
    schema: { type: 'string' },
  },
  'RateLimit-Limit': { description: 'Calls allowed in a window of 60 s.', schema: { type: 'integer' } },
  'RateLimit-Remaining': { description: 'Calls left in the window.', schema: { type: 'integer' } },
  'RateLimit-Reset': { description: 'Seconds until the window ends.', schema: { type: 'integer' } },
  'Retry-After': { description: 'Seconds to wait before trying again.', schema: { type: 'integer' } },
  'WWW-Authenticate': { description: 'Always `Bearer`.', schema: { type: 'string' } },
  'Idempotent-Replayed': {
    description: '`true` if the key was used before: no second message was created.',
    schema: { type: 'string', enum: ['true'] },
  },
} as const

type HeaderName = keyof typeof HEADERS

const RATE_LIMIT: readonly HeaderName[] = ['RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset']

/** The calls that take an `Idempotency-Key`. */
const SENDING: ReadonlySet<string> = new Set([
  'sendText',
  'sendMedia',
  'sendMessage',
  'react',
  'removeReaction',
  'editMessage',
  'deleteMessage',
  'markRead',
  'reactByHand',
  'removeReactionByHand',
  'editByHand',
  'deleteByHand',
  'markReadByHand',
])

/** References to the headers of an answer with `status`. @param rated whether the call counts against a rate limit */
export function headersOf(status: string, rated: boolean, operationId: string | undefined): Record<string, object> {
  const names: HeaderName[] = ['X-Request-Id']
  if (rated && status !== '401') names.push(...RATE_LIMIT)
  if (status === '401') names.push('WWW-Authenticate')
  if (status === '429' || status === '503') names.push('Retry-After')
  if (status === '202' && SENDING.has(operationId ?? '')) names.push('Idempotent-Replayed')
  return Object.fromEntries(names.map(name => [name, { $ref: `#/components/headers/${name}` }]))
}
