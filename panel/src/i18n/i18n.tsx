import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useState } from 'react'
import { reloadOnFailure } from '../reload-on-failure.ts'
import { readStored, store } from '../storage.ts'
import { en, type Words } from './en.ts'
import { detectLanguage, findLanguage, type Language, loadWords } from './languages.ts'

const STORED_AS = 'pombal.language'

interface LanguageState {
  language: Language
  words: Words
  setLanguage: (language: Language) => void
}

const LanguageContext = createContext<LanguageState>({ language: 'en', words: en, setLanguage: () => {} })

/** The language that was selected here before, else the browser's. */
export function preferredLanguage(): Language {
  return findLanguage(readStored('localStorage', STORED_AS)) ?? detectLanguage(navigator.languages)
}

export interface FirstWords {
  language: Language
  words: Words
}

/** The words of an older version are gone after an upgrade: a reload fetches the new ones. */
function loadOrReload(language: Language): Promise<Words> {
  return reloadOnFailure(() => loadWords(language))()
}

/** Await it before the first paint. Otherwise a page could appear in one language and then change to another. */
export async function loadFirstWords(): Promise<FirstWords> {
  const language = preferredLanguage()
  return loadOrReload(language).then(
    words => ({ language, words }),
    () => ({ language: 'en', words: en }),
  )
}

export function LanguageProvider({ first, children }: { first: FirstWords; children: ReactNode }) {
  const [current, setCurrent] = useState(first)
  useEffect(() => {
    document.documentElement.lang = current.language
  }, [current.language])
  const setLanguage = useCallback((language: Language) => {
    store('localStorage', STORED_AS, language)
    // If the reload did not help, the language stays.
    loadOrReload(language).then(
      words => setCurrent({ language, words }),
      () => undefined,
    )
  }, [])
  const value = useMemo(() => ({ ...current, setLanguage }), [current, setLanguage])
  return <LanguageContext value={value}>{children}</LanguageContext>
}

export function useWords(): Words {
  return useContext(LanguageContext).words
}

export function useLanguage(): Pick<LanguageState, 'language' | 'setLanguage'> {
  return useContext(LanguageContext)
}
