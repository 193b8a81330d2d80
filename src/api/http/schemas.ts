import fastJsonStringify from 'fast-json-stringify'
import type { FastifySchema, FastifySchemaCompiler, FastifySerializerCompiler, RouteOptions } from 'fastify'
import { type TSchema, Type } from 'typebox'
import { Check, Compile } from 'typebox/schema'
import { Refusal, type RefusalDetail } from '../../domain/refusal.ts'
import { MOMENT_MESSAGE } from '../resources/schema-kit.ts'
import { invalid } from './error-handler.ts'

/** The most details in an error, however many fields are invalid. */
const MAX_DETAILS = 10
const MAX_NAME_LENGTH = 64

const INTEGER = /^[0-9]{1,9}$/

/**
 * Compiles a route's schema into a check. A body must have the right types. In a query string, integers are parsed and
 * unknown names are refused, because ignoring a filter would return an unfiltered list. A missing body (null) counts as an
 * empty object.
 */
export const compileValidator: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  const validator = Compile(schema)
  return (input: unknown) => {
    const unknown = httpPart === 'querystring' ? findUnknown(schema, input) : undefined
    if (unknown !== undefined) return { error: refuseUnknown(schema, unknown) }
    const repeated = httpPart === 'querystring' ? findRepeated(input) : undefined
    if (repeated !== undefined) return { error: invalid(repeated, 'must be given once') }
    const value = httpPart === 'querystring' ? readIntegers(schema, input) : (input ?? {})
    if (validator.Check(value)) return value === input ? true : { value }
    const [, problems] = validator.Errors(shorten(schema as AnySchema, value))
    return { error: createRefusal(httpPart ?? 'request', problems) }
  }
}

/** Gives a list without filters an empty query schema, so that it refuses every query parameter (contract §1). */
export function refuseUnknownFilters(route: RouteOptions): void {
  const { method, schema, config } = route
  const isRead = method === 'GET' || method === 'HEAD'
  if (!isRead || schema === undefined || schema.querystring !== undefined || !isList(schema)) return
  route.schema = { ...schema, querystring: Type.Object({}) }
  route.config = { ...config, refusals: [...(config?.refusals ?? []), 'invalid_request'] }
}

function isList({ response }: FastifySchema): boolean {
  const answer = (response as Record<string, TSchema> | undefined)?.['200']
  return answer !== undefined && propertiesOf(answer)['data']?.type === 'array'
}

/** Compiles the schema of a response at its first use. Most are never used, and compiling all would delay the start. */
export const compileSerializer: FastifySerializerCompiler<TSchema> = ({ schema }) => {
  let serialize: ((body: unknown) => string) | undefined
  return body => {
    serialize ??= fastJsonStringify(schema)
    return serialize(body)
  }
}

function propertiesOf(schema: TSchema): Record<string, { type?: string }> {
  return (schema as { properties?: Record<string, { type?: string }> }).properties ?? {}
}

function findUnknown(schema: TSchema, query: unknown): string | undefined {
  const properties = propertiesOf(schema)
  return Object.keys(query as object).find(name => !Object.hasOwn(properties, name))
}

function findRepeated(query: unknown): string | undefined {
  return Object.entries(query as object).find(([, value]) => Array.isArray(value))?.[0]
}

function refuseUnknown(schema: TSchema, name: string): Refusal {
  const field = name.slice(0, MAX_NAME_LENGTH)
  const known = Object.keys(propertiesOf(schema)).join(', ')
  const message = `is not a parameter of this call; ${known ? `it has ${known}` : 'the call takes no parameters'}`
  return new Refusal('invalid_request', `"${field}" ${message}.`, { details: [{ field, message }] })
}

function readIntegers(schema: TSchema, query: unknown): unknown {
  const properties = propertiesOf(schema)
  const entries = Object.entries(query as Record<string, unknown>)
  return Object.fromEntries(
    entries.map(([name, value]) => {
      const isInteger = properties[name]?.type === 'integer' && typeof value === 'string' && INTEGER.test(value)
      return [name, isInteger ? Number(value) : value]
    }),
  )
}

type AnySchema = {
  items?: AnySchema
  maxItems?: number
  properties?: Record<string, AnySchema>
  patternProperties?: Record<string, AnySchema>
  anyOf?: AnySchema[]
}

/**
 * A value with the same first problems. The validator creates an error for each invalid item and unknown field, which takes
 * seconds for a large body. Only parts that the schema describes are shortened, however deep the value is.
 */
function shorten(schema: AnySchema | undefined, value: unknown): unknown {
  if (schema === undefined || typeof value !== 'object' || value === null) return value
  const variants = schema.anyOf ?? [schema]
  if (Array.isArray(value)) {
    const { items, maxItems = MAX_DETAILS } = variants.find(variant => variant.items !== undefined) ?? {}
    return value.slice(0, maxItems + 1).map(item => shorten(items, item))
  }
  const properties: Record<string, AnySchema> = Object.assign({}, ...variants.map(variant => variant.properties))
  const [others] = variants.flatMap(variant => Object.values(variant.patternProperties ?? {}))
  const kept: [string, unknown][] = []
  let unknown = 0
  for (const name of Object.keys(value)) {
    const isKnown = Object.hasOwn(properties, name)
    if (!isKnown && unknown > MAX_DETAILS) continue
    const field: unknown = Reflect.get(value, name)
    if (isKnown) kept.push([name, shorten(properties[name], field)])
    else if (others === undefined || !Check(others as TSchema, field)) {
      kept.push([name, field])
      unknown += 1
    }
  }
  return Object.fromEntries(kept)
}

interface Problem {
  instancePath: string
  schemaPath: string
  message: string
  keyword: string
  params: object
}

function createRefusal(part: string, problems: readonly Problem[]): Refusal {
  const details = withoutOtherTypes(problems).slice(0, MAX_DETAILS).flatMap(toDetails)
  const first = details[0]
  if (!first) return new Refusal('invalid_request')
  const subject = first.field ? `"${first.field}"` : `The ${part}`
  return new Refusal('invalid_request', `${subject} ${first.message}.`, { details })
}

/**
 * The problems, without those of alternatives that the value does not try to be. If it is of no alternative's type, one
 * problem names all of them.
 */
function withoutOtherTypes(problems: readonly Problem[]): readonly Problem[] {
  let left = problems
  for (const whole of problems.filter(({ keyword }) => keyword === 'anyOf')) {
    const prefix = `${whole.schemaPath}/anyOf/`
    const alternativeOf = ({ schemaPath }: Problem) => schemaPath.slice(prefix.length).split('/')[0]!
    const inside = left.filter(problem => problem.schemaPath.startsWith(prefix) && isWithin(problem, whole))
    const expected = new Map<string, string>()
    for (const problem of inside)
      if (problem.instancePath === whole.instancePath && (problem.keyword === 'type' || problem.keyword === 'const'))
        expected.set(alternativeOf(problem), expectationOf(problem))
    const tried = inside.filter(problem => !expected.has(alternativeOf(problem)))
    const message = `must be ${[...expected.values()].join(' or ')}`
    const kept = tried.length > 0 ? tried : [{ ...whole, message }]
    left = left.flatMap(problem => (problem === whole ? kept : inside.includes(problem) ? [] : [problem]))
  }
  return left
}

function isWithin({ instancePath }: Problem, whole: Problem): boolean {
  return `${instancePath}/`.startsWith(`${whole.instancePath}/`)
}

function expectationOf({ params }: Problem): string {
  const { type, allowedValue } = params as { type?: string | string[]; allowedValue?: unknown }
  return type === undefined ? JSON.stringify(allowedValue) : withArticles(type)
}

function toDetails(problem: Problem): RefusalDetail[] {
  const field = problem.instancePath.slice(1).replaceAll('/', '.')
  const {
    requiredProperties: missing,
    allowedValues,
    format,
    type,
  } = problem.params as {
    requiredProperties?: string[]
    allowedValues?: unknown[]
    format?: string
    type?: string | string[]
  }
  // The unknown field is named by the problem with the keyword `boolean` (below).
  if (problem.keyword === 'additionalProperties') return []
  // Only the schema of additional properties is `false`.
  if (problem.keyword === 'boolean')
    return [{ field: field.slice(0, MAX_NAME_LENGTH), message: 'is not a field of this call' }]
  if (allowedValues) return [{ field, message: `must be one of ${allowedValues.map(String).join(', ')}` }]
  if (format === 'date-time') return [{ field, message: MOMENT_MESSAGE }]
  if (type !== undefined) return [{ field, message: `must be ${withArticles(type)}` }]
  if (problem.keyword !== 'required' || !missing) return [{ field, message: problem.message }]
  return missing.map(name => ({ field: field ? `${field}.${name}` : name, message: 'is required' }))
}

function withArticles(types: string | string[]): string {
  const withArticle = (type: string) => (type === 'null' ? type : /^[aio]/.test(type) ? `an ${type}` : `a ${type}`)
  return [types].flat().map(withArticle).join(' or ')
}
