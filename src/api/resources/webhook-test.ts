import { type Static, Type } from 'typebox'
import { nullable } from './schema-kit.ts'

export const webhookTestSchema = Type.Object(
  {
    url: Type.String({ description: 'Where it was posted.' }),
    status: nullable(Type.Integer({ description: 'The HTTP status answered; null when no status line came.' })),
    error: nullable(Type.String({ description: 'A code such as `timeout` or `blocked_address`; null with a status.' })),
    durationMs: Type.Number({ description: 'Milliseconds until it was judged.' }),
    responseExcerpt: nullable(Type.String({ description: "The beginning of the answer's body, at most 1 KiB." })),
    headers: Type.Record(Type.String(), Type.String(), { description: 'As posted.' }),
    body: Type.String({ description: 'The bytes posted.' }),
  },
  { title: 'WebhookTest', description: 'What came of a test event.' },
)

export type WebhookTestView = Static<typeof webhookTestSchema>
