import type { FastifySchemaCompiler } from 'fastify'
import type { TSchema } from 'typebox'
import { Compile } from 'typebox/compile'
import { Convert } from 'typebox/value'
import { Refusal, type RefusalDetail } from '../domain/refusal.ts'

/** Enough to see what is wrong, bounded whatever was sent. */
const MAX_DETAILS = 10

/**
 * Compiles a route's schema into a check. Only query strings, which are all text, are converted to the types asked for;
 * a body must have the right types. No body (null here) counts as an empty object, which lacks what is required.
 */
export const compileValidator: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  const validator = Compile(schema)
  return (given: unknown) => {
    const value = httpPart === 'querystring' ? Convert(schema, given) : (given ?? {})
    if (!validator.Check(value)) return { error: createRefusal(httpPart ?? 'request', validator.Errors(value)) }
    return value === given ? true : { value }
  }
}

interface Problem {
  instancePath: string
  message: string
  keyword: string
  params: object
}

function createRefusal(part: string, problems: readonly Problem[]): Refusal {
  const details = problems.slice(0, MAX_DETAILS).flatMap(toDetails)
  const first = details[0]
  if (!first) return new Refusal('invalid_request')
  const subject = first.field ? `"${first.field}"` : `The ${part}`
  return new Refusal('invalid_request', `${subject} ${first.message}.`, { details })
}

function toDetails(problem: Problem): RefusalDetail[] {
  const field = problem.instancePath.slice(1).replaceAll('/', '.')
  const missing = (problem.params as { requiredProperties?: string[] }).requiredProperties
  if (problem.keyword !== 'required' || !missing) return [{ field, message: problem.message }]
  return missing.map(name => ({ field: field ? `${field}.${name}` : name, message: 'is required' }))
}
