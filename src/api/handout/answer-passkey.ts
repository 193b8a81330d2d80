import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { PasskeyAnswer } from '../../domain/connection/passkey.ts'
import { Refusal } from '../../domain/refusal.ts'
import type { Handout, HandoutKey } from '../../store/handouts/handouts.ts'
import { passToOwner } from '../admin/connection/answer-passkey.ts'
import { callerAddress } from '../admin/sign-in/caller-address.ts'
import type { Api, ApiContext } from '../context.ts'
import { assertionOf, assertionSchema } from '../resources/passkey.ts'
import { type LinkPageView, linkPageSchema } from '../resources/people/handout.ts'
import { dataOf } from '../resources/schema-kit.ts'
import { tokenSchema } from './token-schema.ts'

/** The part of the linking page that these calls need. */
interface Page {
  keyOf(request: FastifyRequest, token: string, reply: null): HandoutKey
  find(request: FastifyRequest, key: HandoutKey): Promise<Handout>
  read(request: FastifyRequest, key: HandoutKey): Promise<LinkPageView>
}

/** Small, because callers need no key. An assertion has about a kilobyte. */
const MAX_BODY_BYTES = 16_384
const refusals = [
  'link_not_found',
  'link_in_use',
  'already_linked',
  'passkey_not_requested',
  'passkey_expired',
  'too_many_attempts',
  'instance_not_found',
] as const
const response = { 202: dataOf(linkPageSchema, 'Accepted. `readLink` shows the progress.') }

/** The step with a passkey on the linking page. */
export function answerPasskeyByLink(api: Api, context: ApiContext, page: Page): void {
  api.post(
    '/link/passkey',
    {
      bodyLimit: MAX_BODY_BYTES,
      schema: {
        operationId: 'answerPasskeyByLink',
        summary: 'Answer with the passkey through a link',
        description: 'Like `answerPasskey`, in the browser that the link is bound to.',
        tags: ['Link page'],
        security: [],
        body: Type.Object({ token: tokenSchema, assertion: assertionSchema }, { title: 'LinkPasskey' }),
        response,
      },
      config: { refusals: [...refusals] },
    },
    async (request, reply) => {
      const key = page.keyOf(request, request.body.token, null)
      const assertion = assertionOf(request.body.assertion)
      await pass(request, key, { stage: 'assertion', assertion }, 'answerPasskeyByLink')
      return reply.code(202).send({ data: await page.read(request, key) })
    },
  )
  api.post(
    '/link/passkey/confirm',
    {
      bodyLimit: MAX_BODY_BYTES,
      schema: {
        operationId: 'confirmPasskeyByLink',
        summary: 'Confirm the code through a link',
        description: 'Like `confirmPasskey`, in the browser that the link is bound to.',
        tags: ['Link page'],
        security: [],
        body: Type.Object({ token: tokenSchema }, { title: 'LinkPasskeyCode' }),
        response,
      },
      config: { refusals: [...refusals] },
    },
    async (request, reply) => {
      const key = page.keyOf(request, request.body.token, null)
      await pass(request, key, { stage: 'code' }, 'confirmPasskeyByLink')
      return reply.code(202).send({ data: await page.read(request, key) })
    },
  )

  async function pass(request: FastifyRequest, key: HandoutKey, answer: PasskeyAnswer, action: string): Promise<void> {
    const { id, instanceId, openedAt, usedAt } = await page.find(request, key)
    if (usedAt !== null) throw new Refusal('already_linked')
    if (openedAt === null) throw new Refusal('passkey_not_requested')
    const entry = { actor: id, actorName: null, action, instanceId, address: callerAddress(request), details: {} }
    await context.store.audit.during(entry, () => passToOwner(context.store, instanceId, answer))
  }
}
