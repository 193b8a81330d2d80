import type { RefusalCode } from '../../domain/refusal.ts'

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
  ETag: { description: 'Identifies the bytes, for `If-None-Match` and `If-Range`.', schema: { type: 'string' } },
  'Content-Range': {
    description: 'The range in the body and the size of the file; with 416 only the size.',
    schema: { type: 'string' },
  },
  'Content-Disposition': {
    description: '`attachment`, and the name of the file if it has one.',
    schema: { type: 'string' },
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

const OF_FILES: Readonly<Record<string, readonly HeaderName[]>> = {
  200: ['ETag', 'Content-Disposition'],
  206: ['ETag', 'Content-Disposition', 'Content-Range'],
  304: ['ETag'],
  416: ['ETag', 'Content-Range'],
}

interface Call {
  operationId: string | undefined
  /** It counts against a rate limit. */
  rated: boolean
  refusals: readonly RefusalCode[]
  /** It answers with the bytes of a file. */
  servesFile: boolean
}

/** References to the headers of an answer with `status`. */
export function headersOf(status: string, { operationId, rated, refusals, servesFile }: Call): Record<string, object> {
  const names: HeaderName[] = ['X-Request-Id']
  if (rated && status !== '401') names.push(...RATE_LIMIT)
  if (status === '401') names.push('WWW-Authenticate')
  const isPending = status === '409' && refusals.includes('media_pending')
  if (status === '429' || status === '503' || isPending) names.push('Retry-After')
  if (status === '202' && SENDING.has(operationId ?? '')) names.push('Idempotent-Replayed')
  if (servesFile) names.push(...(OF_FILES[status] ?? []))
  return Object.fromEntries(names.map(name => [name, { $ref: `#/components/headers/${name}` }]))
}
