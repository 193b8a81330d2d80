import { type TSchema, Type } from 'typebox'

const MAX_LIMIT = 200
const DEFAULT_LIMIT = 50
const MAX_CURSOR_LENGTH = 1_024

export const pageQuery = {
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MAX_LIMIT,
      default: DEFAULT_LIMIT,
      description: 'The maximum number of entries on a page.',
    }),
  ),
  cursor: Type.Optional(
    Type.String({ minLength: 1, maxLength: MAX_CURSOR_LENGTH, description: 'The `nextCursor` of the previous page.' }),
  ),
}

/** Part of the descriptions of lists of messages. */
export const PAGE_OF_TEXTS =
  'A page ends after about 1 MiB of text, so it may be shorter than `limit`: continue until `nextCursor` is null.'

export function pageRequest({ limit = DEFAULT_LIMIT, cursor }: { limit?: number; cursor?: string }) {
  return { limit, cursor }
}

/** Lists are `{data: […], nextCursor}` (contract §6). */
export function pageOf<T extends TSchema>(schema: T, description: string) {
  return Type.Object(
    {
      data: Type.Array(schema),
      nextCursor: Type.Unsafe<string | null>({ type: ['string', 'null'], description: 'Null on the last page.' }),
    },
    { description },
  )
}
