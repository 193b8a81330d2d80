import { REFUSALS, type RefusalCode } from '../../domain/refusal.ts'

/** The envelope of every error (contract §1). */
export const errorSchema = {
  title: 'Error',
  type: 'object',
  required: ['error'],
  properties: {
    error: {
      type: 'object',
      required: ['code', 'message', 'requestId'],
      properties: {
        code: { type: 'string', enum: Object.keys(REFUSALS), description: 'Stable. Programs should branch on it.' },
        message: { type: 'string', description: 'A sentence for people.' },
        details: {
          type: 'array',
          description: 'The invalid fields and the reasons.',
          items: {
            type: 'object',
            required: ['field', 'message'],
            properties: { field: { type: 'string' }, message: { type: 'string' } },
          },
        },
        requestId: { type: 'string', description: 'The `X-Request-Id` of this answer, also in the log.' },
      },
    },
  },
} as const

/** The refusals of an operation as responses, by status. */
export function refusalResponses(codes: readonly RefusalCode[]): Record<string, object> {
  const byStatus = Map.groupBy([...new Set(codes)], code => String(REFUSALS[code][0]))
  return Object.fromEntries(Array.from(byStatus, ([status, group]) => [status, refusalResponse(group)]))
}

function refusalResponse(codes: readonly RefusalCode[]) {
  const examples = codes.map(code => [
    code,
    { value: { error: { code, message: REFUSALS[code][1], requestId: 'req_1f2e3d4c5b6a79880f1e' } } },
  ])
  return {
    description: codes.map(code => `\`${code}\`: ${REFUSALS[code][1]}`).join(' '),
    content: {
      'application/json': {
        schema: {
          allOf: [errorSchema, { properties: { error: { properties: { code: { enum: codes } } } } }],
        },
        examples: Object.fromEntries(examples),
      },
    },
  }
}
