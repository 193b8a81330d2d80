import { type Static, Type } from 'typebox'
import { SCOPES } from '../../../domain/access.ts'
import type { ApiKey } from '../../../store/api-keys/api-keys.ts'
import { nameSchema } from '../instance.ts'
import { moment, nullable, oneOf, toIso, toIsoOrNull } from '../schema-kit.ts'

export const scopesSchema = Type.Array(oneOf(SCOPES), {
  minItems: 1,
  uniqueItems: true,
  description:
    '`send`: send messages and commands, check numbers; `read`: read messages, chats, groups, contacts and commands; ' +
    '`events`: read and redeliver events, retry deliveries; `webhooks`: read and change webhooks, with their ' +
    'secrets; `media`: upload, download and erase media.',
})

const properties = {
  id: Type.String({ description: 'Identifies the key. It is not the key itself.', examples: ['key_4f9k2m7q1x0z'] }),
  name: nameSchema,
  prefix: Type.String({ description: 'The first characters of the key.', examples: ['pmb_x8Kq2w'] }),
  scopes: scopesSchema,
  createdAt: moment('When it was created.'),
  expiresAt: nullable(moment('The time from which it is refused; null: never.')),
  lastUsedAt: nullable(moment('When it was last used, recorded up to a minute late; null: never.')),
}

export const apiKeySchema = Type.Object(properties, { title: 'ApiKey', description: 'A key in addition to the token.' })

export const createdKeySchema = Type.Object(
  {
    ...properties,
    key: Type.String({
      description: 'The key. It is shown only once and stored as a digest.',
      examples: [`pmb_${'x'.repeat(43)}`],
    }),
  },
  { title: 'CreatedApiKey' },
)

export type ApiKeyView = Static<typeof apiKeySchema>
export type CreatedApiKeyView = Static<typeof createdKeySchema>

export function apiKeyView({ id, name, prefix, scopes, createdAt, expiresAt, lastUsedAt }: ApiKey): ApiKeyView {
  return {
    id,
    name,
    prefix,
    scopes: [...scopes],
    createdAt: toIso(createdAt),
    expiresAt: toIsoOrNull(expiresAt),
    lastUsedAt: toIsoOrNull(lastUsedAt),
  }
}
