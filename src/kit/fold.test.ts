import { expect, test } from 'vitest'
import { fold, MARKS } from './fold.ts'

test.each([
  ['São Paulo', 'sao paulo'],
  ['PÂTISSERIE', 'patisserie'],
  ['Müller & Søn', 'muller & søn'],
  ['東京', '東京'],
  ['Ёлка', 'елка'],
])('%s is compared as %s', (text, folded) => {
  expect(fold(text)).toBe(folded)
})

test('the class of marks contains exactly the combining marks', () => {
  const inJavaScript = MARKS.replace(/\\U0*([\da-f]+)/g, String.raw`\u{$1}`)
  const isMark = new RegExp(inJavaScript, 'u')
  const wrong: number[] = []
  for (let code = 0; code <= 0x10ffff; code += 1) {
    const character = String.fromCodePoint(code)
    if (isMark.test(character) !== /\p{M}/u.test(character)) wrong.push(code)
  }
  expect(wrong).toEqual([])
})
