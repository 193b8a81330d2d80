import { en, type Words } from './en.ts'

interface LanguageEntry {
  /** BCP 47. */
  code: string
  /** The name of the language, in the language itself. */
  name: string
  /**
   * In lower case. A browser language that begins with this selects the entry. If several match, the first entry wins, so a more
   * specific one goes first.
   */
  prefix: string
  load(): Promise<Words>
}

/** English is part of the panel's script. Every other language is loaded when it is selected. */
export const LANGUAGES = [
  { code: 'en', name: 'English', prefix: 'en', load: async () => en },
  { code: 'pt-BR', name: 'Português (Brasil)', prefix: 'pt', load: async () => (await import('./pt-br.ts')).ptBr },
] as const satisfies readonly LanguageEntry[]

export type Language = (typeof LANGUAGES)[number]['code']

export function findLanguage(code: string | null): Language | undefined {
  return LANGUAGES.find(language => language.code === code)?.code
}

/** The first of the browser's languages that the panel has, else English. */
export function detectLanguage(browser: readonly string[]): Language {
  const codes = browser.map(wanted => LANGUAGES.find(({ prefix }) => wanted.toLowerCase().startsWith(prefix))?.code)
  return codes.find(code => code !== undefined) ?? 'en'
}

export function loadWords(language: Language): Promise<Words> {
  return LANGUAGES.find(({ code }) => code === language)!.load()
}
