import { Button, PasswordInput, Stack, TextInput } from '@mantine/core'
import { useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { ApiError, callData } from '../api/client.ts'
import type { Session } from '../api/types.ts'
import { useAction } from '../api/use-action.ts'
import { problemText } from '../components/feedback/problem.tsx'
import { useTitle } from '../components/title.ts'
import dove from '../dove.svg'
import type { Words } from '../i18n/en.ts'
import { useWords } from '../i18n/i18n.tsx'
import { LanguageMenu, SchemeButton } from '../shell.tsx'
import { AnswerOfProvider, SignInWithProvider, useSignedIn } from './people/sign-in-with-provider.tsx'
import classes from './sign-in.module.css'

export function SignIn() {
  const words = useWords()
  const signedIn = useSignedIn()
  const { from, ended } = useSearch({ strict: false })
  const [key, setKey] = useState('')
  const [name, setName] = useState('')
  useTitle(words.signIn.action)

  const signIn = useAction(
    {
      mutationFn: () => enter(key, name.trim()),
      onSuccess: session => signedIn(session, from),
    },
    { isFinal: true },
  )

  return (
    <main className={classes.page}>
      <div className={classes.tools}>
        <LanguageMenu />
        <SchemeButton />
      </div>
      <form
        className={classes.card}
        onSubmit={event => {
          event.preventDefault()
          if (key !== '') signIn.mutate()
        }}
      >
        <img src={dove} alt="" width="56" height="56" className={classes.logo} />
        <h1 className={classes.title}>Pombal</h1>
        <p className={classes.lead}>{words.signIn.lead}</p>
        {ended && !signIn.error && (
          <p className={classes.note} role="status">
            {words.signIn.ended}
          </p>
        )}
        <Stack gap="md">
          <AnswerOfProvider />
          <PasswordInput
            visibilityToggleButtonProps={{ 'aria-label': words.common.showPassword, 'aria-hidden': false, tabIndex: 0 }}
            label={words.signIn.field}
            value={key}
            onChange={event => setKey(event.currentTarget.value)}
            autoComplete="current-password"
            size="md"
            autoFocus
            error={signIn.error && errorText(signIn.error, words, name.trim() !== '')}
          />
          <TextInput
            label={words.signIn.name}
            description={words.signIn.nameHint}
            value={name}
            maxLength={100}
            onChange={event => setName(event.currentTarget.value)}
            autoComplete="username"
            size="md"
          />
          <Button type="submit" size="md" fullWidth loading={signIn.isPending} disabled={key === ''}>
            {words.signIn.action}
          </Button>
          <SignInWithProvider from={from} />
        </Stack>
        <div className={classes.help}>
          <p>{words.signIn.fieldHint}</p>
          <p>
            {words.signIn.showCommand} <code>cat data/admin.key</code>
          </p>
        </div>
      </form>
    </main>
  )
}

/** Signs in with a password, or with the admin key, which is often copied together with spaces. */
async function enter(key: string, name: string): Promise<Session> {
  const post = (typed: string) =>
    callData<Session>('/session', { method: 'POST', body: { key: typed, ...(name && { name }) } })
  try {
    return await post(key)
  } catch (error) {
    const isWrong = error instanceof ApiError && error.code === 'invalid_admin_key'
    const trimmed = key.trim()
    if (!isWrong || name !== '' || trimmed === key || trimmed === '') throw error
    return await post(trimmed)
  }
}

function errorText(error: unknown, words: Words, isPerson: boolean): string {
  if (!(error instanceof ApiError)) return problemText(error, words)
  if (error.code === 'invalid_admin_key') return isPerson ? words.signIn.wrongPerson : words.signIn.wrong
  if (error.code === 'unreachable') return words.signIn.unreachable
  if (error.code === 'too_many_attempts') return words.signIn.throttled(error.retryAfterSeconds ?? 60)
  return problemText(error, words)
}
