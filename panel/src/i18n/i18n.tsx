import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useState } from 'react'
import { en, type Words } from './en.ts'

export type Language = 'en' | 'pt-BR'
export const LANGUAGES: readonly { code: Language; name: string }[] = [
  { code: 'en', name: 'English' },
  { code: 'pt-BR', name: 'Português (Brasil)' },
]

const STORED_AS = 'pombal.language'

interface Spoken {
  language: Language
  words: Words
  speak: (language: Language) => void
}

const SpokenContext = createContext<Spoken>({ language: 'en', words: en, speak: () => {} })

/** The language chosen here before, else the browser's. */
export function preferredLanguage(): Language {
  const stored = readStored()
  if (stored) return stored
  return navigator.languages.some(language => language.toLowerCase().startsWith('pt')) &&
    !navigator.languages[0]?.toLowerCase().startsWith('en')
    ? 'pt-BR'
    : 'en'
}

function readStored(): Language | null {
  try {
    const stored = localStorage.getItem(STORED_AS)
    return LANGUAGES.find(({ code }) => code === stored)?.code ?? null
  } catch {
    return null
  }
}

async function load(language: Language): Promise<Words> {
  return language === 'en' ? en : (await import('./pt-br.ts')).ptBr
}

export interface FirstWords {
  language: Language
  words: Words
}

/** To be awaited before the first paint, so that no page shows in one language and then in another. */
export async function loadFirstWords(): Promise<FirstWords> {
  const language = preferredLanguage()
  return { language, words: await load(language) }
}

export function LanguageProvider({ first, children }: { first: FirstWords; children: ReactNode }) {
  const [spoken, setSpoken] = useState(first)
  useEffect(() => {
    document.documentElement.lang = spoken.language
  }, [spoken.language])
  const speak = useCallback((language: Language) => {
    try {
      localStorage.setItem(STORED_AS, language)
    } catch {
      // Without storage the choice holds until the page is left.
    }
    void load(language).then(words => setSpoken({ language, words }))
  }, [])
  const value = useMemo(() => ({ ...spoken, speak }), [spoken, speak])
  return <SpokenContext value={value}>{children}</SpokenContext>
}

export function useWords(): Words {
  return useContext(SpokenContext).words
}

export function useLanguage(): Pick<Spoken, 'language' | 'speak'> {
  return useContext(SpokenContext)
}
