import { Button } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useCallback, useEffect, useRef, useState } from 'react'
import { callData } from '../../api/client.ts'
import { accountOf, reportSignIn } from '../../api/other-tabs.ts'
import { FRESH_TOKEN, sessionQuery, signInOptionsQuery } from '../../api/queries.ts'
import type { BegunSignIn, Session } from '../../api/types.ts'
import { useAction } from '../../api/use-action.ts'
import { Problem } from '../../components/feedback/problem.tsx'
import { Waiting } from '../../components/feedback/waiting.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import { readStored, store } from '../../storage.ts'

/** The page to open after the provider has sent the browser back to this tab. */
const FROM = 'pombal.from'

/** Runs after every sign-in. */
export function useSignedIn(): (session: Session, from: string | null | undefined) => Promise<void> {
  const client = useQueryClient()
  const navigate = useNavigate()
  return useCallback(
    async (session, from) => {
      const before = client.getQueryData(sessionQuery.queryKey)
      const isSameAccount = before !== undefined && accountOf(before) === accountOf(session)
      // A new token is shown only once: after an expired session the same person still needs it.
      client.removeQueries({ predicate: ({ queryKey }) => !(isSameAccount && queryKey[0] === FRESH_TOKEN) })
      client.getMutationCache().clear()
      client.setQueryData(sessionQuery.queryKey, session)
      reportSignIn(session)
      await navigate({ href: ownPage(from), replace: true })
    },
    [client, navigate],
  )
}

/** The first page if `from` is an address of another site: anybody who sends a link to the sign-in page chooses `from`. */
function ownPage(from: string | null | undefined): string {
  const url = from?.startsWith('/') ? URL.parse(from, window.location.origin) : null
  return url?.origin === window.location.origin ? url.pathname + url.search + url.hash : '/'
}

/** The button, if a provider is configured. */
export function SignInWithProvider({ from, invitation }: { from?: string | undefined; invitation?: string }) {
  const words = useWords()
  const { data: options } = useQuery(signInOptionsQuery)
  const begin = useAction(
    {
      mutationFn: () =>
        callData<BegunSignIn>('/session/oidc', { method: 'POST', body: invitation ? { invitation } : {} }),
      onSuccess: ({ url }) => {
        store('sessionStorage', FROM, from || null)
        window.location.assign(url)
      },
    },
    { isFinal: true },
  )
  const { reset } = begin
  useEffect(() => {
    // "Back" from the provider shows the page as it was left.
    const onShown = (event: PageTransitionEvent) => event.persisted && reset()
    window.addEventListener('pageshow', onShown)
    return () => window.removeEventListener('pageshow', onShown)
  }, [reset])
  if (!options?.oidc) return null
  return (
    <>
      <Button
        variant="default"
        size="md"
        fullWidth
        loading={begin.isPending || begin.isSuccess}
        onClick={() => begin.mutate()}
      >
        {words.signIn.withProvider(options.oidc.name)}
      </Button>
      <Problem error={begin.error} />
    </>
  )
}

/** Finishes the sign-in when the provider has sent the browser back. Shows why it failed. */
export function AnswerOfProvider() {
  const signedIn = useSignedIn()
  const [answer] = useState(() => (window.location.pathname === '/sign-in/oidc' ? window.location.search : ''))
  const isSent = useRef(false)
  const { mutate, isPending, error } = useMutation({
    mutationFn: () => callData<Session>('/session/oidc/finish', { method: 'POST', body: { answer } }),
    onSuccess: session => signedIn(session, readStored('sessionStorage', FROM)),
  })
  useEffect(() => {
    if (answer === '' || isSent.current) return
    isSent.current = true
    // The answer works once: reloading the page must not send it again.
    window.history.replaceState(window.history.state, '', window.location.pathname)
    mutate()
  }, [answer, mutate])
  return isPending ? <Waiting /> : <Problem error={error} />
}
