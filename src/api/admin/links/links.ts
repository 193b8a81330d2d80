import { randomBytes } from 'node:crypto'
import { Type } from 'typebox'
import { newHandoutId } from '../../../domain/ids.ts'
import { Refusal } from '../../../domain/refusal.ts'
import type { Api, ApiContext } from '../../context.ts'
import { checkUrl, isId, parseName, tokenDigest } from '../../input.ts'
import { instanceIdSchema } from '../../resources/instance.ts'
import { pageOf } from '../../resources/page.ts'
import { createdLinkSchema, linkSchema, linkView } from '../../resources/people/handout.ts'
import { dataOf, nullable } from '../../resources/schema-kit.ts'
import { noteForAudit } from '../audit/record-changes.ts'
import { getInstanceOrRefuse, instanceParams, orNotFound } from '../instances/instance-params.ts'

const TOKEN_BYTES = 32
const MINUTE_MS = 60_000
const MAX_MINUTES = 1_440

const bodySchema = Type.Object(
  {
    expiresInMinutes: Type.Integer({
      minimum: 1,
      maximum: MAX_MINUTES,
      description: `How long the link works: 1 to ${MAX_MINUTES} minutes.`,
      examples: [60],
    }),
    title: Type.Optional(
      nullable(
        Type.String({ description: 'For the person who opens it: 1 to 100 characters.', examples: ['Loja da Ana'] }),
      ),
    ),
    returnUrl: Type.Optional(
      nullable(
        Type.String({
          description: 'Where the page leads back to, http or https.',
          examples: ['https://shop.example.com'],
        }),
      ),
    ),
  },
  { title: 'LinkToCreate' },
)

export function createLink(api: Api, { store, settings, now }: ApiContext): void {
  api.post(
    '/instances/:id/links',
    {
      schema: {
        operationId: 'createLink',
        summary: 'Create a linking link',
        description:
          'Give the link to the person who has the phone. It opens a page without sign-in that shows the QR code or ' +
          'a pairing code of this instance, and nothing else. It works in one browser, until a number is linked. It ' +
          'never logs out or replaces a number. It ends when the account that created it may no longer create it.',
        tags: ['Connection'],
        params: instanceParams,
        body: bodySchema,
        response: { 201: dataOf(createdLinkSchema, 'Created. The link is shown only once.') },
      },
      config: { refusals: ['instance_not_found', 'invalid_request', 'already_linked', 'too_many_links'] },
    },
    async (request, reply) => {
      const { id: instanceId } = request.params
      const { expiresInMinutes, title = null, returnUrl = null } = request.body
      if (returnUrl !== null) checkUrl('returnUrl', returnUrl, () => 'allowed', 'pages')
      const token = randomBytes(TOKEN_BYTES).toString('base64url')
      const handout = {
        id: newHandoutId(),
        instanceId,
        title: title === null ? null : parseName('title', title),
        returnUrl,
        digest: Buffer.from(tokenDigest(token), 'hex'),
        lastsMs: expiresInMinutes * MINUTE_MS,
        createdBy: request.account?.id ?? null,
      }
      noteForAudit(request, { linkId: handout.id, expiresInMinutes })
      const created = orNotFound(isId(instanceId) ? await store.handouts.create(handout, now()) : null)
      if (created === 'linked') throw new Refusal('already_linked')
      if (created === 'full') throw new Refusal('too_many_links')
      // Browsers send no fragment to servers, so the token appears in no log of a proxy.
      const path = `/link#${token}`
      const url = settings.publicUrl ? new URL(path, settings.publicUrl).href : path
      return reply.code(201).send({ data: { ...linkView(created), url } })
    },
  )
}

export function listLinks(api: Api, { store }: ApiContext): void {
  api.get(
    '/instances/:id/links',
    {
      schema: {
        operationId: 'listLinks',
        summary: 'List the linking links',
        description: 'Newest first, on one page. Links that have ended are listed for a day.',
        tags: ['Connection'],
        params: instanceParams,
        response: { 200: pageOf(linkSchema, 'The links, without their secret.') },
      },
      config: { refusals: ['instance_not_found'] },
    },
    async request => {
      const { id } = request.params
      const links = orNotFound(isId(id) ? await store.handouts.list(id) : null)
      return { data: links.map(linkView), nextCursor: null }
    },
  )
}

export function revokeLink(api: Api, { store }: ApiContext): void {
  api.delete(
    '/instances/:id/links/:linkId',
    {
      schema: {
        operationId: 'revokeLink',
        summary: 'Revoke a linking link',
        description: 'Takes effect at once. A code that the link requested, and that nobody has scanned yet, ends.',
        tags: ['Connection'],
        params: Type.Object({ id: instanceIdSchema, linkId: Type.String({ description: 'The link.' }) }),
        response: { 204: Type.Null({ description: 'Revoked.' }) },
      },
      config: { refusals: ['instance_not_found', 'link_not_found'] },
    },
    async (request, reply) => {
      const { linkId } = request.params
      const { id } = await getInstanceOrRefuse(store, request.params.id)
      if (!isId(linkId) || !(await store.handouts.revoke(id, linkId))) throw new Refusal('link_not_found')
      return reply.code(204).send(null)
    },
  )
}
