import { describe, expect, test } from 'vitest'
import { CONNECTION_CAUSES, CONNECTION_STATES } from '../../../src/domain/connection/connection.ts'
import { FAILURE_CODES } from '../../../src/domain/message.ts'
import { REFUSALS } from '../../../src/domain/refusal.ts'
import { ATTEMPT_ERRORS } from '../../../src/outbound/attempt-error.ts'
import { en } from './en.ts'
import { detectLanguage, LANGUAGES, type Language } from './languages.ts'

/** Texts that are the same in English. */
const SHARED: Readonly<Record<Exclude<Language, 'en'>, readonly string[]>> = {
  'pt-BR': [
    ...['Menu', 'Webhook', 'Webhook: 7', 'WhatsApp', 'URL', 'Sandbox', 'sandbox', 'QR code', 'msg_…', '1 h', '24 h'],
    ...['Status', 'id', '120363000000000042@g.us'],
  ],
}

const translations = await Promise.all(
  LANGUAGES.flatMap(language => (language.code === 'en' ? [] : language)).map(async ({ code, load }) => ({
    code,
    words: await load(),
  })),
)

describe.each(translations)('$code', ({ code, words }) => {
  test.each([
    ['reasons of a connection', CONNECTION_CAUSES, words.connection.reasons],
    ['states of a connection', CONNECTION_STATES, words.connection.states],
    ['failures of a message', FAILURE_CODES, words.failures],
    ['errors of an attempt', ATTEMPT_ERRORS, words.attemptErrors],
    ['refusals', Object.keys(REFUSALS), { ...words.problems, ...words.problems.refusals }],
  ])('has a text for every code: %s', (_, codes, texts: Record<string, unknown>) => {
    expect(codes.filter(code => !texts[code])).toEqual([])
  })

  test('every text differs from the English one', () => {
    const same = leaves(en, words).filter(([english, text]) => english === text && !SHARED[code].includes(english))
    expect(same.map(([english]) => english)).toEqual([])
  })
})

test('the first of the browser’s languages that the panel has is selected', () => {
  for (const { code, prefix } of LANGUAGES) {
    expect(detectLanguage([code])).toBe(code)
    expect(detectLanguage(['xx', `${prefix}-ZZ`, ...LANGUAGES.map(other => other.code)])).toBe(code)
  }
  expect(detectLanguage(['xx'])).toBe('en')
  expect(detectLanguage([])).toBe('en')
})

/** All pairs of texts. Functions are called with the same arguments. */
function leaves(english: unknown, translated: unknown): [string, string][] {
  if (typeof english === 'string') return [[english, String(translated)]]
  if (typeof english === 'function') return [[english('7', '7'), (translated as typeof english)('7', '7')]]
  return Object.entries(english as object).flatMap(([key, value]) => {
    return leaves(value, (translated as Record<string, unknown>)[key])
  })
}

test('the text about a wrong recipient names every kind of recipient', async () => {
  for (const { load } of LANGUAGES) {
    const { problems } = await load()
    for (const kind of ['7', '@lid', '@g.us']) expect(problems.invalid_phone_number).toContain(kind)
  }
})
