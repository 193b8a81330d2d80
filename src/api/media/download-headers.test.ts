import { validateHeaderValue } from 'node:http'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { cleanFilename } from '../../domain/media.ts'
import { attachmentHeader, isKnown, parseRange } from './download-headers.ts'

describe('Range', () => {
  test.each([
    [undefined, null],
    ['bytes=0-', { from: 0, to: 99 }],
    ['bytes=10-19', { from: 10, to: 19 }],
    ['bytes=90-1000', { from: 90, to: 99 }],
    ['bytes=-10', { from: 90, to: 99 }],
    ['bytes=-1000', { from: 0, to: 99 }],
    ['bytes=100-', 'unsatisfiable'],
    ['bytes=-0', 'unsatisfiable'],
    ['bytes=5-4', null],
    ['bytes=0-1,5-6', null],
    ['bytes=-', null],
    ['items=0-5', null],
    ['bytes=0-99999999999999999999', { from: 0, to: 99 }],
    ['bytes=99999999999999999999-', 'unsatisfiable'],
    ['bytes=-99999999999999999999', { from: 0, to: 99 }],
    ['Bytes=0-9', { from: 0, to: 9 }],
  ])('%j of 100 bytes is %j', (header, expected) => expect(parseRange(header, 100)).toEqual(expected))
})

test('If-None-Match may hold several tags, weak tags, or * for any tag', () => {
  for (const header of ['"a"', 'W/"a"', '"b", "a"', '*']) expect(isKnown(header, '"a"')).toBe(true)
  for (const header of [undefined, '', '"b"', 'a']) expect(isKnown(header, '"a"')).toBe(false)
})

describe('Content-Disposition', () => {
  test('names the file twice: for old clients and exactly', () => {
    expect(attachmentHeader('März "1".pdf')).toBe(
      `attachment; filename="M_rz _1_.pdf"; filename*=UTF-8''M%C3%A4rz%20%221%22.pdf`,
    )
    expect(attachmentHeader(null)).toBe(`attachment; filename="file"; filename*=UTF-8''file`)
  })

  test('is a valid header with the exact name, whatever the file is called', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 300 }), given => {
        const name = cleanFilename(given)
        const header = attachmentHeader(name)
        validateHeaderValue('content-disposition', header)
        expect(header).toMatch(/^attachment; filename="[^"\\%]*"; filename\*=UTF-8''[\w%.!#$&+^`|~-]+$/)
        expect(decodeURIComponent(header.split("UTF-8''")[1]!)).toBe(name ?? 'file')
      }),
    )
  })
})
