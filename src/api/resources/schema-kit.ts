import { type Static, type TSchema, Type } from 'typebox'

export function oneOf<const T extends readonly string[]>(values: T, options: { description?: string } = {}) {
  return Type.Unsafe<T[number]>({ type: 'string', enum: [...values], ...options })
}

export function nullable<T extends TSchema>(schema: T) {
  const { type, enum: values, ...rest } = schema as { type?: string; enum?: string[] }
  if (type === undefined || type === 'object')
    return Type.Unsafe<Static<T> | null>({ anyOf: [schema, { type: 'null' }] })
  return Type.Unsafe<Static<T> | null>({ type: [type, 'null'], ...(values && { enum: [...values, null] }), ...rest })
}

export const MOMENT_MESSAGE = 'must be an ISO 8601 time such as 2026-11-21T12:00:00Z'

/** An ISO 8601 time in UTC. */
export function moment(description: string) {
  return Type.String({ format: 'date-time', description, examples: ['2026-11-21T12:00:00.000Z'] })
}

export function toIso(ms: number): string {
  return new Date(ms).toISOString()
}

export function toIsoOrNull(ms: number | null): string | null {
  return ms === null ? null : toIso(ms)
}

/** Success is `{data: …}` (contract §1). `description` describes the response. */
export function dataOf<T extends TSchema>(schema: T, description: string) {
  return Type.Object({ data: schema }, { description })
}
