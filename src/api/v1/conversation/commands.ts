import { hash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { RequestedExtras } from '../../../domain/conversation.ts'
import { newCommandId, newWhatsappId } from '../../../domain/ids.ts'
import { Refusal, type RefusalCode } from '../../../domain/refusal.ts'
import { requestAcceptance } from '../../accept-message.ts'
import type { Api, ApiContext } from '../../context.ts'
import { checkText, findIdempotencyKey, isId } from '../../input.ts'
import { acceptedCommandSchema, commandIdSchema, commandSchema, commandView } from '../../resources/command.ts'
import { idempotencyHeaderSchema, messageIdSchema, textSchema } from '../../resources/message.ts'
import { dataOf } from '../../resources/schema-kit.ts'

type CommandContent = Omit<NonNullable<RequestedExtras['command']>, 'targetId'>

const params = Type.Object({ id: messageIdSchema })
const MAX_EMOJI_UNITS = 32

const COMMON: readonly RefusalCode[] = [
  'invalid_request',
  'message_not_found',
  'instance_not_connected',
  'idempotency_key_reused',
]

/** What all routes of commands have in common. */
function route(operationId: string, summary: string, description: string, refusals: readonly RefusalCode[] = []) {
  return {
    schema: {
      operationId,
      summary,
      description: `${description} The result is reported as \`command.done\` or \`command.failed\`, and by \`getCommand\`.`,
      tags: ['Messages'],
      headers: idempotencyHeaderSchema,
      params,
      response: { 202: dataOf(acceptedCommandSchema, 'Accepted: the command is stored.') },
    },
    config: { scope: 'send' as const, refusals: [...COMMON, ...refusals] },
  }
}

/** Commands on a message: stored like messages and executed in the order of their chat. */
export function registerCommands(api: Api, context: ApiContext): void {
  react(api, context)
  const edit = route('editMessage', 'Edit a text', 'WhatsApp allows it for 15 minutes after a text was sent.', [
    'not_own_message',
    'not_editable',
    'edit_window_closed',
  ])
  const body = Type.Object({ text: textSchema }, { title: 'NewText' })
  api.patch('/messages/:id', { ...edit, schema: { ...edit.schema, body } }, (request, reply) => {
    checkText(request.body.text)
    return accept(context, request, reply, { kind: 'edit', text: request.body.text } as CommandContent)
  })
  api.delete(
    '/messages/:id',
    route(
      'deleteMessage',
      'Delete a message for everyone',
      'A message that was not written yet is not sent: it fails with the code `cancelled`.',
      ['not_own_message'],
    ),
    (request, reply) => accept(context, request, reply, { kind: 'delete' }),
  )
  api.post(
    '/messages/:id/read',
    route('markRead', 'Mark a received message as read', 'Its sender sees that it was read.', ['not_incoming_message']),
    (request, reply) => accept(context, request, reply, { kind: 'read' }),
  )
  getCommand(api, context)
}

function react(api: Api, context: ApiContext): void {
  const set = route('react', 'React to a message', 'Replaces an earlier reaction of the instance.')
  const body = Type.Object(
    { emoji: Type.String({ minLength: 1, maxLength: MAX_EMOJI_UNITS, examples: ['👍'] }) },
    { title: 'Reaction' },
  )
  api.put('/messages/:id/reaction', { ...set, schema: { ...set.schema, body } }, (request, reply) => {
    checkText(request.body.emoji, 'emoji')
    return accept(context, request, reply, { kind: 'reaction', emoji: request.body.emoji } as CommandContent)
  })
  api.delete(
    '/messages/:id/reaction',
    route('removeReaction', 'Remove a reaction', 'Without a reaction of the instance nothing changes.'),
    (request, reply) => accept(context, request, reply, { kind: 'reaction', emoji: null } as CommandContent),
  )
}

async function accept(
  { store, now }: ApiContext,
  request: Pick<FastifyRequest, 'headers' | 'instanceId'> & { params: { id: string } },
  reply: Pick<FastifyReply, 'code' | 'header'>,
  content: CommandContent,
): Promise<{ data: { id: string; status: 'queued' } }> {
  const { id: targetId } = request.params
  const acceptedAt = now()
  const key = findIdempotencyKey(request.headers)
  const command = { ...content, targetId } as NonNullable<RequestedExtras['command']>
  if (!isId(targetId)) throw new Refusal('message_not_found')
  const message = {
    id: newCommandId(acceptedAt),
    instanceId: request.instanceId,
    to: '',
    text: '',
    whatsappId: newWhatsappId(),
    extras: { command },
    // A digest of an object never equals that of a text, which is a list.
    idempotency: key === undefined ? undefined : { key, digest: hash('sha256', JSON.stringify({ command }), 'buffer') },
  }
  const { id, replayed } = await requestAcceptance(store, message, acceptedAt)
  if (replayed) reply.header('idempotent-replayed', 'true')
  reply.code(202)
  return { data: { id, status: 'queued' } }
}

function getCommand(api: Api, { store }: ApiContext): void {
  api.get(
    '/commands/:id',
    {
      schema: {
        operationId: 'getCommand',
        summary: 'Read a command',
        description: 'Returns a reaction, edit, deletion or read mark with its state.',
        tags: ['Messages'],
        params: Type.Object({ id: commandIdSchema }),
        response: { 200: dataOf(commandSchema, 'The command.') },
      },
      config: { scope: 'read', refusals: ['command_not_found'] },
    },
    async request => {
      const { id } = request.params
      const command = isId(id) ? await store.messages.findCommand(request.instanceId, id) : null
      if (command === null) throw new Refusal('command_not_found')
      return { data: commandView(command) }
    },
  )
}
