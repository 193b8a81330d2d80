import { type Static, Type } from 'typebox'
import { nullable } from './schema-kit.ts'

const properties = {
  reject: Type.Boolean({ description: 'Whether phone calls to the number are rejected.' }),
  text: nullable(
    Type.String({
      minLength: 1,
      description: 'The text that is sent to the person whose phone call was rejected. Null: no text.',
      examples: ['We cannot take calls here. Please write to us.'],
    }),
  ),
}

export const callsSchema = Type.Object(properties, { title: 'Calls' })

export const callsRequestSchema = Type.Object(
  { reject: properties.reject, text: Type.Optional(properties.text) },
  { title: 'CallsRequest' },
)

export type CallsView = Static<typeof callsSchema>
