import { Button, PasswordInput, Stack } from '@mantine/core'
import { useState } from 'react'
import { callData } from '../../api/client.ts'
import type { Session } from '../../api/types.ts'
import { useAction } from '../../api/use-action.ts'
import { Notice } from '../../components/feedback/notice.tsx'
import { Problem } from '../../components/feedback/problem.tsx'
import { useFragment } from '../../components/fragment.ts'
import { useTitle } from '../../components/title.ts'
import dove from '../../dove.svg'
import { useWords } from '../../i18n/i18n.tsx'
import { LanguageMenu, SchemeButton } from '../../shell.tsx'
import classes from '../sign-in.module.css'
import { MIN_PASSWORD } from './password-form.tsx'
import { SignInWithProvider, useSignedIn } from './sign-in-with-provider.tsx'

/** The page of an invitation's link. Opening it changes nothing; setting a password uses the link up. */
export function Invitation() {
  const words = useWords()
  const signedIn = useSignedIn()
  const token = useFragment()
  const [password, setPassword] = useState('')
  useTitle(words.invitation.title)
  const accept = useAction(
    {
      mutationFn: () => callData<Session>('/invitations/accept', { method: 'POST', body: { token, password } }),
      onSuccess: session => signedIn(session, null),
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
          accept.mutate()
        }}
      >
        <img src={dove} alt="" width="56" height="56" className={classes.logo} />
        <h1 className={classes.title}>{words.invitation.title}</h1>
        <p className={classes.lead}>{words.invitation.lead}</p>
        <Stack gap="md">
          <PasswordInput
            visibilityToggleButtonProps={{ 'aria-label': words.common.showPassword, 'aria-hidden': false, tabIndex: 0 }}
            label={words.invitation.password}
            description={words.invitation.passwordHint(MIN_PASSWORD)}
            value={password}
            maxLength={200}
            onChange={event => setPassword(event.currentTarget.value)}
            autoComplete="new-password"
            size="md"
            autoFocus
          />
          {token === '' && <Notice tone="bad">{words.invitation.incomplete}</Notice>}
          <Problem error={accept.error} />
          <Button
            type="submit"
            size="md"
            fullWidth
            loading={accept.isPending}
            disabled={password.length < MIN_PASSWORD || token === ''}
          >
            {words.invitation.action}
          </Button>
          {token !== '' && <SignInWithProvider invitation={token} />}
        </Stack>
      </form>
    </main>
  )
}
