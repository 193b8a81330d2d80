import fastJsonStringify from 'fast-json-stringify'
import type { FastifySerializerCompiler } from 'fastify'
import type { TSchema } from 'typebox'

/** Compiles the schema of a response when the first one is sent, because most are never sent and all together delay a start. */
export const compileSerializer: FastifySerializerCompiler<TSchema> = ({ schema }) => {
  let serialize: ((body: unknown) => string) | undefined
  return body => {
    serialize ??= fastJsonStringify(schema)
    return serialize(body)
  }
}
