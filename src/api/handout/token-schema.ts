import { Type } from 'typebox'

const TOKEN_LENGTH = 43

/** The secret of a linking link. */
export const tokenSchema = Type.String({
  minLength: TOKEN_LENGTH,
  maxLength: TOKEN_LENGTH,
  description: 'The part of the link after `#`.',
})
