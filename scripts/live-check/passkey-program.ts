import { readFileSync } from 'node:fs'
import { passkey as words } from '../../panel/src/i18n/en/connection.ts'
import type { PasskeyAssertion, PasskeyRequest } from '../../src/domain/connection/passkey.ts'

const INSTANCE = 'Pombal live check'
const PROGRAM = new URL('../../panel/src/snippets/passkey.js', import.meta.url)

/** The program for WhatsApp's page, as the panel shows it. */
export function programFor(request: PasskeyRequest): string {
  const asked = JSON.stringify({ request, instance: INSTANCE, words: words.box })
  return readFileSync(PROGRAM, 'utf8').replace('ASKED', () => asked)
}

/** Parses the answer that the program shows. Null if the text is something else. */
export function parseAssertion(text: string): PasskeyAssertion | null {
  try {
    const given = JSON.parse(text)
    return typeof given.rawId === 'string' && typeof given.response?.signature === 'string' ? given : null
  } catch {
    return null
  }
}
