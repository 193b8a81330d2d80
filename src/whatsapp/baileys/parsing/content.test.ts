import { proto } from 'baileys'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { decodeContent, encodeContent } from './content.ts'

test('stored content encodes to the same bytes at each attempt', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), text => {
      const content = encodeContent({ text })
      expect(Buffer.from(proto.Message.encode(decodeContent(content)).finish())).toEqual(Buffer.from(content))
      expect(decodeContent(content).extendedTextMessage?.text).toBe(text)
    }),
  )
})

test('each message has its own secret', () => {
  const secretOf = () => decodeContent(encodeContent({ text: 'x' })).messageContextInfo?.messageSecret
  expect(secretOf()).not.toEqual(secretOf())
})
