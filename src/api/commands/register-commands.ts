import { hash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { RequestedExtras } from '../../domain/conversation.ts'
import { newCommandId, newWhatsappId } from '../../domain/ids.ts'
import { Refusal, type RefusalCode } from '../../domain/refusal.ts'
import { acceptMessage } from '../accept-message.ts'
import type { Api, ApiContext } from '../context.ts'
import { checkText, findIdempotencyKey, isId } from '../input.ts'
import { acceptedCommandSchema } from '../resources/conversation/command.ts'
import { idempotencyHeaderSchema, textSchema } from '../resources/message.ts'
import { dataOf } from '../resources/schema-kit.ts'
import type { CommandName, CommandScope } from './scope.ts'

type CommandContent = Omit<NonNullable<RequestedExtras['command']>, 'targetId'>

const MAX_EMOJI_UNITS = 32

const COMMON: readonly RefusalCode[] = [
  'invalid_request',
  'message_not_found',
  'chat_not_writable',
  'instance_not_connected',
  'idempotency_key_reused',
]

/** The options that all routes of commands share. */
function route(
  { names, tags, params, outcome, config, refusals: ofScope }: CommandScope,
  name: CommandName,
  summary: string,
  description: string,
  refusals: readonly RefusalCode[] = [],
) {
  return {
    schema: {
      operationId: names[name],
      summary,
      description: `${description} ${outcome}`,
      tags,
      headers: idempotencyHeaderSchema,
      params: Type.Object(params),
      response: { 202: dataOf(acceptedCommandSchema, 'Accepted: the command is stored.') },
    },
    config: { ...config, refusals: [...ofScope, ...COMMON, ...refusals] },
  }
}

/** Commands on a message: stored like messages and executed in the order of their chat. */
export function registerCommands(api: Api, context: ApiContext, scope: CommandScope): void {
  react(api, context, scope)
  const edit = route(scope, 'editMessage', 'Edit a text', 'WhatsApp allows it for 15 minutes after a text was sent.', [
    'not_own_message',
    'not_editable',
    'edit_window_closed',
  ])
  const body = Type.Object({ text: textSchema }, { title: 'NewText' })
  api.patch(scope.path, { ...edit, schema: { ...edit.schema, body } }, (request, reply) => {
    checkText(request.body.text)
    return accept(context, scope, request, reply, { kind: 'edit', text: request.body.text } as CommandContent)
  })
  api.delete(
    scope.path,
    route(
      scope,
      'deleteMessage',
      'Delete a message for everyone',
      'A message that was never handed to WhatsApp is not sent: it fails with the code `cancelled`.',
      ['not_own_message'],
    ),
    (request, reply) => accept(context, scope, request, reply, { kind: 'delete' }),
  )
  api.post(
    `${scope.path}/read`,
    route(scope, 'markRead', 'Mark a received message as read', 'Its sender sees that it was read.', [
      'not_incoming_message',
    ]),
    (request, reply) => accept(context, scope, request, reply, { kind: 'read' }),
  )
}

function react(api: Api, context: ApiContext, scope: CommandScope): void {
  const set = route(scope, 'react', 'React to a message', 'Replaces an earlier reaction of the instance.')
  const body = Type.Object(
    { emoji: Type.String({ minLength: 1, maxLength: MAX_EMOJI_UNITS, examples: ['👍'] }) },
    { title: 'Reaction' },
  )
  api.put(`${scope.path}/reaction`, { ...set, schema: { ...set.schema, body } }, (request, reply) => {
    checkText(request.body.emoji, 'emoji')
    return accept(context, scope, request, reply, { kind: 'reaction', emoji: request.body.emoji } as CommandContent)
  })
  api.delete(
    `${scope.path}/reaction`,
    route(scope, 'removeReaction', 'Remove a reaction', 'If the instance has not reacted, nothing changes.'),
    (request, reply) => accept(context, scope, request, reply, { kind: 'reaction', emoji: null } as CommandContent),
  )
}

async function accept(
  context: ApiContext,
  scope: CommandScope,
  request: unknown,
  reply: Pick<FastifyReply, 'code' | 'header'>,
  content: CommandContent,
): Promise<{ data: { id: string; status: 'queued' } }> {
  const call = request as FastifyRequest
  const acceptedAt = context.now()
  const key = findIdempotencyKey(call.headers)
  const { instanceId, messageId: targetId } = await scope.targetOf(call)
  const command = { ...content, targetId } as NonNullable<RequestedExtras['command']>
  if (!isId(targetId)) throw new Refusal('message_not_found')
  const message = {
    id: newCommandId(acceptedAt),
    instanceId,
    to: '',
    text: '',
    whatsappId: newWhatsappId(),
    extras: { command },
    // The digest of an object never equals the digest of a text, which is made from a list.
    idempotency: key === undefined ? undefined : { key, digest: hash('sha256', JSON.stringify({ command }), 'buffer') },
  }
  const { id, replayed } = await acceptMessage(context, message, call, acceptedAt)
  call.messageId = id
  if (replayed) reply.header('idempotent-replayed', 'true')
  reply.code(202)
  return { data: { id, status: 'queued' } }
}
