import { type Static, Type } from 'typebox'
import { nullable } from '../schema-kit.ts'

export const webhookTestSchema = Type.Object(
  {
    url: Type.String({ description: 'The URL it was posted to.' }),
    status: nullable(Type.Integer({ description: 'The HTTP status answered; null without a status line.' })),
    error: nullable(Type.String({ description: 'A code such as `timeout` or `blocked_address`; null with a status.' })),
    durationMs: Type.Number({ description: 'Duration in milliseconds.' }),
    responseExcerpt: nullable(Type.String({ description: "The beginning of the answer's body, at most 1 KiB." })),
    headers: Type.Record(Type.String(), Type.String(), { description: 'The headers as posted.' }),
    body: Type.String({ description: 'The posted bytes.' }),
  },
  { title: 'WebhookTest', description: 'The result of a test event.' },
)

export type WebhookTestView = Static<typeof webhookTestSchema>
