import { Button, Group, PasswordInput, Stack } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { call } from '../../api/client.ts'
import { sessionQuery, sessionsQuery } from '../../api/queries.ts'
import { Problem } from '../../components/feedback/problem.tsx'
import { useToast } from '../../components/feedback/toasts.tsx'
import { Card } from '../../components/panels.tsx'
import { useWords } from '../../i18n/i18n.tsx'

/** The service's limit. */
const MIN_PASSWORD = 12

/** Changes the password of the account that is signed in. */
export function OwnPassword() {
  const words = useWords()
  const toast = useToast()
  const client = useQueryClient()
  const { data: session } = useQuery(sessionQuery)
  const [oldPassword, setOldPassword] = useState('')
  const [newPassword, setNewPassword] = useState('')
  const change = useMutation({
    mutationFn: () => call('/session/password', { method: 'POST', body: { oldPassword, newPassword } }),
    onSuccess: () => {
      setOldPassword('')
      setNewPassword('')
      toast(words.ownPassword.changed)
      void client.invalidateQueries(sessionsQuery)
    },
  })
  if (!session?.account) return null
  return (
    <Card title={words.ownPassword.title} hint={words.ownPassword.hint}>
      <form
        onSubmit={event => {
          event.preventDefault()
          change.mutate()
        }}
      >
        <Stack>
          <input
            className="visually-hidden"
            tabIndex={-1}
            aria-hidden
            autoComplete="username"
            value={session.account.name}
            readOnly
          />
          <PasswordInput
            label={words.ownPassword.old}
            autoComplete="current-password"
            value={oldPassword}
            maxLength={200}
            onChange={event => setOldPassword(event.currentTarget.value)}
            maw={420}
          />
          <PasswordInput
            label={words.settings.newPassword}
            description={words.settings.newPasswordHint(MIN_PASSWORD)}
            autoComplete="new-password"
            value={newPassword}
            maxLength={200}
            onChange={event => setNewPassword(event.currentTarget.value)}
            maw={420}
          />
          <Problem error={change.error} />
          <Group>
            <Button
              type="submit"
              loading={change.isPending}
              disabled={!oldPassword || newPassword.length < MIN_PASSWORD}
            >
              {words.ownPassword.change}
            </Button>
          </Group>
        </Stack>
      </form>
    </Card>
  )
}
