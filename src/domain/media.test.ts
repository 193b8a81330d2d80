import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { cleanFilename, MAX_FILENAME_LENGTH, maxBytesOf, parseMimetype, typeOf } from './media.ts'

const MIB = 1_048_576

describe('the name of a file', () => {
  test.each([
    ['invoice.pdf', 'invoice.pdf'],
    ['../../etc/passwd', 'passwd'],
    ['C:\\Users\\ana\\foto.jpg', 'foto.jpg'],
    [' Rechnung März.pdf ', 'Rechnung März.pdf'],
    ['a\u0000b\r\nc.txt', 'abc.txt'],
    ['photo\u202Egpj.exe', 'photogpj.exe'],
    ['family 👨‍👩‍👧.png', 'family 👨‍👩‍👧.png'],
    ['..', null],
    ['folder/', null],
    ['\u0007', null],
  ])('%j becomes %j', (given, expected) => expect(cleanFilename(given)).toBe(expected))

  test('keeps its extension when it is cut', () => {
    expect(cleanFilename(`${'é'.repeat(400)}.pdf`)).toBe(`${'é'.repeat(MAX_FILENAME_LENGTH - 4)}.pdf`)
    expect(cleanFilename('💾'.repeat(400))).toBe('💾'.repeat(MAX_FILENAME_LENGTH))
  })

  test('takes no time if it has millions of characters', () => {
    const name = `${'x/'.repeat(4_000_000)}${'y'.repeat(8_000_000)}.pdf`
    const startedAt = performance.now()
    expect(cleanFilename(name)).toBe(`${'y'.repeat(MAX_FILENAME_LENGTH - 4)}.pdf`)
    expect(performance.now() - startedAt).toBeLessThan(300)
  })

  test('never names another folder, never breaks a header or a line, and cleaning it again changes nothing', () => {
    const names = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 600 }),
      fc.string({ unit: 'grapheme', maxLength: 600 }),
    )
    fc.assert(
      fc.property(names, name => {
        const clean = cleanFilename(name)
        if (clean === null) return
        expect(clean).not.toMatch(/[\p{Cc}/\\]/u)
        expect(clean.isWellFormed()).toBe(true)
        expect([...clean].length).toBeLessThanOrEqual(MAX_FILENAME_LENGTH)
        expect(cleanFilename(clean)).toBe(clean)
      }),
    )
  })
})

describe('the type of a file', () => {
  test.each([
    ['image/png', 'application/pdf', 'image/png'],
    [null, 'text/csv', 'text/csv'],
    [null, 'image/png', 'application/octet-stream'],
    [null, null, 'application/octet-stream'],
    ['application/zip', 'application/vnd.oasis.opendocument.text', 'application/vnd.oasis.opendocument.text'],
    ['application/zip', 'video/mp4', 'application/zip'],
    ['application/zip', null, 'application/zip'],
  ])('content %j and claim %j are %j', (detected, declared, expected) =>
    expect(typeOf(detected, declared)).toBe(expected),
  )

  test.each([
    ['Image/PNG; charset=x', 'image/png'],
    ['text/plain', 'text/plain'],
    ['text', null],
    ['a/b c', null],
    ['a/b\r\nSet-Cookie: x', null],
    ['', null],
  ])('%j is parsed as %j', (given, expected) => expect(parseMimetype(given)).toBe(expected))

  test('limits its size', () => {
    expect(['image/webp', 'audio/ogg; codecs=opus', 'video/mp4', 'application/pdf'].map(maxBytesOf)).toEqual(
      [16, 64, 64, 100].map(mib => mib * MIB),
    )
  })
})
