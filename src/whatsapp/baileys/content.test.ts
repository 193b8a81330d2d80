import { proto } from 'baileys'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { decodeContent, encodeText } from './content.ts'

test('stored content, as Baileys encodes it again at each attempt, is the same to the byte', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), text => {
      const content = encodeText(text)
      expect(Buffer.from(proto.Message.encode(decodeContent(content)).finish())).toEqual(Buffer.from(content))
      expect(decodeContent(content).extendedTextMessage?.text).toBe(text)
    }),
  )
})

test('no two messages share a secret', () => {
  const secretOf = () => decodeContent(encodeText('x')).messageContextInfo?.messageSecret
  expect(secretOf()).not.toEqual(secretOf())
})
