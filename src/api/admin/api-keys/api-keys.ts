import { Type } from 'typebox'
import { newKeyId } from '../../../domain/ids.ts'
import { Refusal } from '../../../domain/refusal.ts'
import type { Api, ApiContext } from '../../context.ts'
import { invalid } from '../../http/error-handler.ts'
import { isId, parseMoment, parseName, tokenDigest } from '../../input.ts'
import { instanceIdSchema, nameSchema } from '../../resources/instance.ts'
import { pageOf } from '../../resources/page.ts'
import { apiKeySchema, apiKeyView, createdKeySchema, scopesSchema } from '../../resources/people/api-key.ts'
import { dataOf, moment, nullable } from '../../resources/schema-kit.ts'
import { noteForAudit } from '../audit/record-changes.ts'
import { getInstanceOrRefuse, instanceParams, orNotFound } from '../instances/instance-params.ts'
import { newToken } from '../secrets.ts'

export function listKeys(api: Api, { store }: ApiContext): void {
  api.get(
    '/instances/:id/keys',
    {
      schema: {
        operationId: 'listKeys',
        summary: 'List the API keys of an instance',
        description: "Newest first, at most 50, on one page. The instance's token is not one of them.",
        tags: ['API keys'],
        params: instanceParams,
        response: { 200: pageOf(apiKeySchema, 'All keys, including expired ones.') },
      },
      config: { refusals: ['instance_not_found'] },
    },
    async request => {
      const { id } = request.params
      const keys = orNotFound(isId(id) ? await store.apiKeys.list(id) : null)
      return { data: keys.map(apiKeyView), nextCursor: null }
    },
  )
}

/** `pmb_` and 6 of the 43 characters: enough to recognise a key. The other 220 bits stay secret. */
const PREFIX_LENGTH = 10

const bodySchema = Type.Object(
  {
    name: nameSchema,
    scopes: scopesSchema,
    expiresAt: Type.Optional(
      nullable(moment('The time from which the key is refused. It must be in the future. Default: never.')),
    ),
  },
  { title: 'ApiKeyToCreate' },
)

export function createKey(api: Api, { store, now }: ApiContext): void {
  api.post(
    '/instances/:id/keys',
    {
      schema: {
        operationId: 'createKey',
        summary: 'Create an API key',
        description:
          'The key works in place of the token, for calls within its scopes. All keys and the token of an instance share its ' +
          'rate limit.',
        tags: ['API keys'],
        params: instanceParams,
        body: bodySchema,
        response: { 201: dataOf(createdKeySchema, 'Created. The key is shown only once.') },
      },
      config: { refusals: ['instance_not_found', 'invalid_request', 'too_many_keys'] },
    },
    async (request, reply) => {
      const { id } = request.params
      const { name, scopes, expiresAt = null } = request.body
      const createdAt = now()
      const expires = expiresAt === null ? null : parseMoment('expiresAt', expiresAt)
      if (expires !== null && expires <= createdAt) throw invalid('expiresAt', 'must be in the future')
      const key = newToken()
      const newKey = {
        id: newKeyId(),
        instanceId: id,
        name: parseName('name', name),
        digest: Buffer.from(tokenDigest(key), 'hex'),
        prefix: key.slice(0, PREFIX_LENGTH),
        scopes: [...scopes],
        expiresAt: expires,
      }
      noteForAudit(request, { keyId: newKey.id, name: newKey.name, scopes: scopes.join(' '), expiresAt })
      const created = orNotFound(isId(id) ? await store.apiKeys.create(newKey, createdAt) : null)
      if (created === 'full') throw new Refusal('too_many_keys')
      return reply.code(201).send({ data: { ...apiKeyView(created), key } })
    },
  )
}

const keyParams = Type.Object({ id: instanceIdSchema, keyId: Type.String({ description: 'The key.' }) })

export function revokeKey(api: Api, { store }: ApiContext): void {
  api.delete(
    '/instances/:id/keys/:keyId',
    {
      schema: {
        operationId: 'revokeKey',
        summary: 'Revoke an API key',
        description: 'Takes effect at once, on every node.',
        tags: ['API keys'],
        params: keyParams,
        response: { 204: Type.Null({ description: 'Revoked.' }) },
      },
      config: { refusals: ['instance_not_found', 'key_not_found'] },
    },
    async (request, reply) => {
      const { keyId } = request.params
      const { id } = await getInstanceOrRefuse(store, request.params.id)
      if (!isId(keyId) || !(await store.apiKeys.revoke(id, keyId))) throw new Refusal('key_not_found')
      return reply.code(204).send(null)
    },
  )
}
