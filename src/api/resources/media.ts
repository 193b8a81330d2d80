import { type Static, Type } from 'typebox'
import { isReceivingFailure, type Media, RECEIVING_FAILURES, type ReceivingFailure } from '../../domain/media.ts'
import type { ListedMedia } from '../../store/media/media.ts'
import type { ReceivedMedia } from '../../store/messages/messages.ts'
import { moment, nullable, oneOf, toIso } from './schema-kit.ts'

export const mediaIdSchema = Type.String({ examples: ['med_01kb3zq4m8a7c9x2e5g6h8j0k1'] })

export const mediaSchema = Type.Object(
  {
    id: mediaIdSchema,
    mimetype: Type.String({
      description:
        'The type that Pombal detects in the content. If it detects none: the declared type, or ' +
        '`application/octet-stream` if an image, audio or video was declared.',
      examples: ['image/jpeg'],
    }),
    size: Type.Integer({ description: 'Bytes.' }),
    sha256: Type.String({ description: 'The SHA-256 of the bytes in hexadecimal.' }),
    filename: nullable(Type.String()),
    expiresAt: moment('When the bytes are erased.'),
  },
  { title: 'Media' },
)

export function mediaView({ id, mimetype, size, sha256, filename, expiresAt }: Media): Static<typeof mediaSchema> {
  return { id, mimetype, size, sha256: Buffer.from(sha256).toString('hex'), filename, expiresAt: toIso(expiresAt) }
}

const receivingErrorSchema = Type.Object(
  {
    code: oneOf(Object.keys(RECEIVING_FAILURES) as ReceivingFailure[], { description: 'Why it was not fetched.' }),
    message: Type.String({ description: 'The same in words.' }),
  },
  { title: 'ReceivingError' },
)

const factProperties = {
  id: mediaIdSchema,
  mimetype: Type.String({ description: 'The detected type of the file; until it is stored, the stated type.' }),
  size: Type.Integer({ description: 'Bytes. 0 if the message does not state the size and the file is not stored.' }),
  sha256: Type.String({
    description:
      'The SHA-256 of the bytes in hexadecimal. Empty if the message does not state it and the file is not stored.',
  }),
}
const filename = Type.String({ description: 'The name of a document, without its path or misleading characters.' })
const seconds = Type.Integer({ description: 'The length of audio or video in seconds, as the message states it.' })
const pixels = Type.Integer({ description: 'Pixels, as the message states it.' })

/** The file of a received message in `message.received`, `media.ready` and `media.failed`. */
export const eventMediaSchema = Type.Object(
  {
    ...factProperties,
    filename: Type.Optional(filename),
    seconds: Type.Optional(seconds),
    width: Type.Optional(pixels),
    height: Type.Optional(pixels),
    error: Type.Optional(receivingErrorSchema),
  },
  { additionalProperties: false },
)

const RECEIVED_STATES = ['pending', 'ready', 'failed', 'gone'] as const

/** The file of a received message in `GET /v1/messages/{id}`. */
export const receivedMediaSchema = Type.Object(
  {
    ...factProperties,
    filename: nullable(filename),
    seconds: nullable(seconds),
    width: nullable(pixels),
    height: nullable(pixels),
    status: oneOf(RECEIVED_STATES, {
      description:
        '`pending`: being fetched from WhatsApp. `ready`: `GET /v1/media/{id}` returns it. `failed`: see `error`. ' +
        '`gone`: it has expired or was erased.',
    }),
    error: nullable(receivingErrorSchema),
  },
  { title: 'ReceivedMedia' },
)

export function receivedMediaView({ id, facts, state }: ReceivedMedia): Static<typeof receivedMediaSchema> {
  const { sha256, ...others } = facts
  return { id, ...others, sha256: Buffer.from(sha256).toString('hex'), ...statusView(state) }
}

function statusView(state: ReceivedMedia['state']): Pick<Static<typeof receivedMediaSchema>, 'status' | 'error'> {
  if (state === 'pending' || state === 'ready') return { status: state, error: null }
  if (!isReceivingFailure(state)) return { status: 'gone', error: null }
  return { status: 'failed', error: { code: state, message: RECEIVING_FAILURES[state] } }
}

/** A file of an instance in the management API. */
export const listedMediaSchema = Type.Object(
  {
    id: mediaIdSchema,
    direction: oneOf(['in', 'out'], {
      description: '`in`: somebody sent it to the instance. `out`: it was uploaded, or is fetched from a URL.',
    }),
    status: oneOf(RECEIVED_STATES, {
      description:
        '`pending`: being fetched, from WhatsApp or from its URL. `ready`: it can be downloaded. `failed`: see `error`. ' +
        '`gone`: it has expired or was erased.',
    }),
    mimetype: factProperties.mimetype,
    size: factProperties.size,
    filename: nullable(Type.String({ description: 'Without its path or misleading characters.' })),
    error: nullable(receivingErrorSchema),
    createdAt: moment('When it was uploaded, or its message was recorded.'),
    expiresAt: moment('When the bytes are erased.'),
  },
  { title: 'ListedMedia' },
)

export type ListedMediaView = Static<typeof listedMediaSchema>

export function listedMediaView({ isReceived, state, createdAt, expiresAt, ...media }: ListedMedia): ListedMediaView {
  const { id, mimetype, size, filename } = media
  return {
    id,
    direction: isReceived ? 'in' : 'out',
    ...statusView(state),
    mimetype,
    size,
    filename,
    createdAt: toIso(createdAt),
    expiresAt: toIso(expiresAt),
  }
}

export const mediaUsageSchema = Type.Object(
  {
    bytes: Type.Integer({ description: "The storage that the instance's files use." }),
    quotaBytes: Type.Integer({ description: '`MEDIA_QUOTA_MB` in bytes.' }),
  },
  { title: 'MediaUsage' },
)

export type MediaUsageView = Static<typeof mediaUsageSchema>
