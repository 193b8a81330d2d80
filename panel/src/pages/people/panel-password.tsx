import { Button, Stack } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { call } from '../../api/client.ts'
import { sessionQuery, sessionsQuery } from '../../api/queries.ts'
import { Problem } from '../../components/feedback/problem.tsx'
import { useToast } from '../../components/feedback/toasts.tsx'
import { Card } from '../../components/panels.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import { PasswordForm } from './password-form.tsx'

const put = (password: string | null) => call('/password', { method: 'PUT', body: { password } })

/** Sets or removes the password of the panel. */
export function PanelPassword() {
  const { settings: words } = useWords()
  const toast = useToast()
  const client = useQueryClient()
  const { data: session } = useQuery(sessionQuery)
  const remove = useMutation({
    mutationFn: () => put(null),
    onSuccess: () => {
      toast(words.removed)
      void client.invalidateQueries(sessionQuery)
      void client.invalidateQueries(sessionsQuery)
    },
  })
  return (
    <Card title={words.password} hint={words.passwordHint}>
      <Stack>
        <strong>{session?.passwordSet ? words.passwordSet : words.passwordNotSet}</strong>
        <PasswordForm userName="admin" save={put} action={words.savePassword} savedText={words.saved}>
          {session?.passwordSet && (
            <Button variant="subtle" color="red" onClick={() => remove.mutate()}>
              {words.removePassword}
            </Button>
          )}
        </PasswordForm>
        <Problem error={remove.error} />
      </Stack>
    </Card>
  )
}
