/** Text as searches compare it: lower case, without accents. */
export function fold(text: string): string {
  return text.toLowerCase().normalize('NFD').replace(/\p{M}/gu, '')
}

const FIRST = 0xc0
const LAST = 0x17f

/** The accented letters of European languages, and the letters that `fold` turns them into, in the same order. */
export const FOLDED_LETTERS: { from: string; to: string } = foldedLetters()

function foldedLetters(): { from: string; to: string } {
  let from = ''
  let to = ''
  for (let code = FIRST; code <= LAST; code += 1) {
    const letter = String.fromCharCode(code)
    const folded = fold(letter)
    if (!/^[a-z]$/.test(folded)) continue
    from += letter
    to += folded
  }
  return { from, to }
}
