import { isDeepStrictEqual } from 'node:util'

type Json = Record<string, unknown>

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Moves every schema with a title to `components.schemas` and leaves a reference in its place.
 * @throws if one title names two different schemas
 */
export function hoistTitledSchemas(document: Json): { document: Json; schemas: Json } {
  const schemas: Json = {}

  function walk(value: unknown): unknown {
    if (Array.isArray(value)) return value.map(walk)
    if (!isObject(value)) return value
    const walked: Json = Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, walk(inner)]))
    return isTitledSchema(value) ? moveOut(value['title'] as string, walked) : walked
  }

  function moveOut(title: string, schema: Json): Json {
    if (schemas[title] !== undefined && !isDeepStrictEqual(schemas[title], schema)) {
      throw new Error(`Two different schemas are called ${title}.`)
    }
    schemas[title] = schema
    return { $ref: `#/components/schemas/${title}` }
  }

  return { document: walk(document) as Json, schemas }
}

/** `info` has a title too but is not a schema. */
function isTitledSchema(value: Json): boolean {
  return typeof value['title'] === 'string' && typeof value['type'] === 'string'
}
