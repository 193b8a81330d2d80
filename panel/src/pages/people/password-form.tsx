import { Button, Group, PasswordInput, Stack } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { sessionQuery, sessionsQuery } from '../../api/queries.ts'
import { useAction } from '../../api/use-action.ts'
import { Problem } from '../../components/feedback/problem.tsx'
import { useToast } from '../../components/feedback/toasts.tsx'
import { useWords } from '../../i18n/i18n.tsx'

/** The service's limit. */
export const MIN_PASSWORD = 12

interface PasswordFormProps {
  /** For the browser's password manager. */
  userName: string
  /** True if the form also asks for the old password. */
  asksOld?: boolean
  save: (newPassword: string, oldPassword: string) => Promise<unknown>
  action: string
  savedText: string
  /** Beside the button. */
  children?: ReactNode
}

/** Sets the password of the panel or of an account. Either ends other sessions. */
export function PasswordForm({ userName, asksOld = false, save, action, savedText, children }: PasswordFormProps) {
  const words = useWords()
  const toast = useToast()
  const client = useQueryClient()
  const [oldPassword, setOldPassword] = useState('')
  const [newPassword, setNewPassword] = useState('')
  const set = useAction({
    mutationFn: () => save(newPassword, oldPassword),
    onSuccess: () => {
      setOldPassword('')
      setNewPassword('')
      toast(savedText)
      void client.invalidateQueries(sessionQuery)
      void client.invalidateQueries(sessionsQuery)
    },
  })
  const isIncomplete = newPassword.length < MIN_PASSWORD || (asksOld && !oldPassword)
  return (
    <form
      onSubmit={event => {
        event.preventDefault()
        set.mutate()
      }}
    >
      <Stack>
        <input
          className="visually-hidden"
          tabIndex={-1}
          aria-hidden
          autoComplete="username"
          value={userName}
          readOnly
        />
        {asksOld && (
          <PasswordInput
            visibilityToggleButtonProps={{ 'aria-label': words.common.showPassword, 'aria-hidden': false, tabIndex: 0 }}
            label={words.ownPassword.old}
            autoComplete="current-password"
            value={oldPassword}
            maxLength={200}
            onChange={event => setOldPassword(event.currentTarget.value)}
            maw={420}
          />
        )}
        <PasswordInput
          visibilityToggleButtonProps={{ 'aria-label': words.common.showPassword, 'aria-hidden': false, tabIndex: 0 }}
          label={words.settings.newPassword}
          description={words.settings.newPasswordHint(MIN_PASSWORD)}
          autoComplete="new-password"
          value={newPassword}
          maxLength={200}
          onChange={event => setNewPassword(event.currentTarget.value)}
          maw={420}
        />
        <Problem error={set.error} />
        <Group>
          <Button type="submit" loading={set.isPending} disabled={isIncomplete}>
            {action}
          </Button>
          {children}
        </Group>
      </Stack>
    </form>
  )
}
