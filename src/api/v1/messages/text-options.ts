import { type Static, type TObject, Type } from 'typebox'
import type { RequestedExtras } from '../../../domain/conversation.ts'
import { parseRecipient } from '../../../domain/recipients/recipient.ts'
import { Refusal } from '../../../domain/refusal.ts'
import { invalid } from '../../http/error-handler.ts'
import { checkLink, checkText, isId, parseMoment } from '../../input.ts'
import { linkPreviewSchema } from '../../resources/message.ts'

const MAX_METADATA_BYTES = 1_024
const MAX_MENTIONS = 1_024
const MAX_SCHEDULED_MS = 30 * 24 * 60 * 60_000

/** The options of a text message. */
export const textOptions = {
  quote: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 100,
      description:
        "The message of this chat that the text answers: its ID in Pombal, or WhatsApp's ID. WhatsApp's ID of a message of the instance works once that message was given to WhatsApp.",
    }),
  ),
  mentions: Type.Optional(
    Type.Union(
      [
        Type.Array(Type.String({ maxLength: 64 }), { maxItems: MAX_MENTIONS }),
        Type.Unsafe<'all'>({ type: 'string', const: 'all' }),
      ],
      {
        description:
          'Who is mentioned: numbers or LID addresses, or `all` for everybody in a group. The text contains each ' +
          'number or address as `@` and its digits.',
      },
    ),
  ),
  preview: Type.Optional(
    Type.Union([linkPreviewSchema, Type.Unsafe<false>({ type: 'boolean', const: false })], {
      description: 'A link preview. With false, or without this field, none is sent.',
    }),
  ),
  metadata: Type.Optional(
    Type.Object(
      {},
      {
        additionalProperties: true,
        description:
          'At most 1 KiB as JSON, without U+0000 and without lone surrogates. Repeated in every event of the message.',
      },
    ),
  ),
  sendAt: Type.Optional(
    Type.String({ description: 'When to send the message (ISO 8601), at most 30 days ahead. A past time means now.' }),
  ),
}

/** @returns an empty object for a plain text @throws Refusal */
export function parseTextOptions(
  options: Static<TObject<typeof textOptions>>,
  to: string,
  now: number,
): { extras?: RequestedExtras; notBefore?: number } {
  const { quote, mentions, preview, metadata, sendAt } = options
  const extras: RequestedExtras = {
    ...(quote !== undefined && { quote }),
    ...(mentions !== undefined && mentions.length > 0 && { mentions: checkMentions(mentions, to) }),
    ...(preview && { preview: previewOf(preview) }),
    ...(metadata !== undefined && { metadata: checkMetadata(metadata as Record<string, unknown>) }),
  }
  const at = sendAt === undefined ? undefined : parseMoment('sendAt', sendAt)
  if (at !== undefined && at > now + MAX_SCHEDULED_MS) throw invalid('sendAt', 'must be at most 30 days ahead')
  return {
    ...(Object.keys(extras).length > 0 && { extras }),
    ...(at !== undefined && { notBefore: at }),
  }
}

/** Only the documented fields are stored. */
function previewOf(preview: Static<typeof linkPreviewSchema>): NonNullable<RequestedExtras['preview']> {
  const { url, title, description, image } = preview
  checkLink('preview.url', url)
  for (const text of [title, description ?? '']) checkText(text, 'preview')
  if (image !== undefined && !isId(image)) throw new Refusal('media_not_found')
  return { url, title, ...(description !== undefined && { description }), ...(image !== undefined && { image }) }
}

function checkMentions(mentions: string[] | 'all', to: string): string[] | 'all' {
  if (mentions === 'all') {
    if (parseRecipient(to)?.kind !== 'group') throw invalid('mentions', 'may be "all" only in a group')
    return mentions
  }
  for (const mention of mentions) {
    const kind = parseRecipient(mention)?.kind
    if (kind !== 'number' && kind !== 'lid') throw invalid('mentions', 'must contain numbers or LID addresses')
  }
  return mentions
}

function checkMetadata(metadata: Record<string, unknown>): Record<string, unknown> {
  if (jsonBytesOf(metadata) > MAX_METADATA_BYTES) throw invalid('metadata', 'must not be longer than 1 KiB as JSON')
  // Visits every name and value.
  JSON.stringify(metadata, (name, value: unknown) => {
    for (const part of [name, value]) if (typeof part === 'string') checkText(part, 'metadata')
    return value
  })
  return metadata
}

function jsonBytesOf(parsed: Record<string, unknown>): number {
  try {
    return Buffer.byteLength(JSON.stringify(parsed))
  } catch {
    // JSON.parse accepts any depth; JSON.stringify throws after some thousand levels.
    return Number.POSITIVE_INFINITY
  }
}
