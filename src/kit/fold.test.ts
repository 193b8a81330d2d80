import { expect, test } from 'vitest'
import { FOLDED_LETTERS, fold } from './fold.ts'

test.each([
  ['São Paulo', 'sao paulo'],
  ['PÂTISSERIE', 'patisserie'],
  ['Müller & Søn', 'muller & søn'],
  ['東京', '東京'],
])('%s is compared as %s', (text, folded) => {
  expect(fold(text)).toBe(folded)
})

test('every accented letter has its counterpart', () => {
  const { from, to } = FOLDED_LETTERS
  expect(from).toHaveLength(to.length)
  expect(fold(from)).toBe(to)
})
