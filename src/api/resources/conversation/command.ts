import { type Static, Type } from 'typebox'
import { COMMAND_KINDS, type CommandState } from '../../../domain/conversation.ts'
import type { MessageFailure } from '../../../domain/message.ts'
import { failureSchema, messageIdSchema } from '../message.ts'
import { moment, nullable, oneOf, toIso, toIsoOrNull } from '../schema-kit.ts'

export const commandIdSchema = Type.String({
  description: 'The command, as returned by the call that requested it.',
  examples: ['cmd_01kajxq8r2f0v7m3n5p9s1t4w6'],
})

export const acceptedCommandSchema = Type.Object(
  { id: commandIdSchema, status: oneOf(['queued'], { description: 'Always `queued` here.' }) },
  { title: 'AcceptedCommand' },
)

export const reactionEmojiSchema = nullable(
  Type.String({ description: 'Of a reaction, else absent; null if the reaction is removed.' }),
)

export const commandSchema = Type.Object(
  {
    id: commandIdSchema,
    command: oneOf(COMMAND_KINDS, { description: 'What is to be done.' }),
    messageId: messageIdSchema,
    emoji: Type.Optional(reactionEmojiSchema),
    status: oneOf(['queued', 'done', 'failed'], { description: 'The state of the command.' }),
    createdAt: moment('When it was accepted.'),
    doneAt: nullable(moment("When WhatsApp's server acknowledged it.")),
    failedAt: nullable(moment('When it failed.')),
    error: nullable(failureSchema),
  },
  { title: 'Command', description: 'Something that WhatsApp is asked to do with a message.' },
)

export function commandView({
  id,
  kind,
  messageId,
  emoji,
  createdAt,
  doneAt,
  failedAt,
  failure,
}: CommandState & { failure: MessageFailure | null }): Static<typeof commandSchema> {
  const status = failedAt !== null ? 'failed' : doneAt !== null ? 'done' : 'queued'
  return {
    id,
    command: kind,
    messageId,
    ...(emoji !== undefined && { emoji }),
    status,
    createdAt: toIso(createdAt),
    doneAt: toIsoOrNull(doneAt),
    failedAt: toIsoOrNull(failedAt),
    error: failure,
  }
}
