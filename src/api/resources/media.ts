import { type Static, Type } from 'typebox'
import type { Media } from '../../domain/media.ts'
import { moment, nullable, toIso } from './schema-kit.ts'

export const mediaIdSchema = Type.String({ examples: ['med_01kb3zq4m8a7c9x2e5g6h8j0k1'] })

export const mediaSchema = Type.Object(
  {
    id: mediaIdSchema,
    mimetype: Type.String({
      description: 'What the content shows; for other content, what the caller declared.',
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
