interface Schema {
  [keyword: string]: unknown
}

const SCHEMA_MAPS: ReadonlySet<string> = new Set(['properties', 'patternProperties'])
const SCHEMA_LISTS: ReadonlySet<string> = new Set(['allOf', 'anyOf', 'oneOf'])
const SCHEMAS: ReadonlySet<string> = new Set(['items', 'additionalProperties', 'not'])

/**
 * The same document as OpenAPI 3.0, for tools that do not read 3.1. The webhooks are in `x-webhooks`, because 3.0 has
 * no place for them.
 */
export function toOpenApi30(document: Record<string, unknown>): Record<string, unknown> {
  const { info, webhooks, components, ...rest } = JSON.parse(JSON.stringify(document))
  delete info.license.identifier
  const { schemas, ...otherComponents } = components
  return {
    ...convertSchemasIn({ ...rest, 'x-webhooks': webhooks }),
    openapi: '3.0.3',
    info,
    components: { ...convertSchemasIn(otherComponents), schemas: mapValues(schemas, convertSchema) },
  }
}

/** Converts every `schema` of paths, parameters, bodies, answers and headers. */
function convertSchemasIn<T>(value: T): T {
  if (Array.isArray(value)) return value.map(convertSchemasIn) as T
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => {
      if (key === 'schema') return [key, convertSchema(inner)]
      return [key, key === 'example' ? inner : convertSchemasIn(inner)]
    }),
  ) as T
}

/** 3.0 has one type per schema and no `null`: use `anyOf` and `nullable`. It ignores keywords beside `$ref`. */
function convertSchema(schema: unknown): unknown {
  if (typeof schema !== 'object' || schema === null) return schema
  const { type, const: constant, examples, $ref, anyOf, ...rest } = schema as Schema
  const alternatives =
    [type].flat().length > 1 ? [type].flat().map(each => ({ type: each })) : (anyOf as Schema[] | undefined)
  const others = alternatives?.filter(each => each['type'] !== 'null')
  const converted: Schema = {
    ...Object.fromEntries(Object.entries(rest).map(([keyword, value]) => [keyword, convertKeyword(keyword, value)])),
    ...(constant !== undefined && { enum: [constant] }),
    ...(Array.isArray(examples) && { example: examples[0] }),
    ...(others && others.length < alternatives!.length && { nullable: true }),
  }
  const isAlone = Object.keys(converted).length === 0
  if ($ref !== undefined) return isAlone ? { $ref } : { ...converted, allOf: [{ $ref }] }
  if (others === undefined) return { ...converted, ...(type !== undefined && { type }) }
  if (others.length > 1) return { ...converted, anyOf: others.map(convertSchema) }
  const only = convertSchema(others[0]) as Schema
  return '$ref' in only ? { ...converted, allOf: [only] } : { ...only, ...converted }
}

function convertKeyword(keyword: string, value: unknown): unknown {
  if (SCHEMA_MAPS.has(keyword)) return mapValues(value as Schema, convertSchema)
  if (SCHEMA_LISTS.has(keyword)) return (value as unknown[]).map(convertSchema)
  return SCHEMAS.has(keyword) ? convertSchema(value) : value
}

function mapValues(values: Schema, convert: (value: unknown) => unknown): Schema {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, convert(value)]))
}
