import { useQuery } from '@tanstack/react-query'
import { call } from '../../api/client.ts'
import { sessionQuery } from '../../api/queries.ts'
import { Card } from '../../components/panels.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import { PasswordForm } from './password-form.tsx'

/** Changes the password of the account that is signed in. */
export function OwnPassword() {
  const { ownPassword: words } = useWords()
  const { data: session } = useQuery(sessionQuery)
  if (!session?.account?.hasPassword) return null
  return (
    <Card title={words.title} hint={words.hint}>
      <PasswordForm
        userName={session.account.name}
        asksOld
        save={(newPassword, oldPassword) =>
          call('/session/password', { method: 'POST', body: { oldPassword, newPassword } })
        }
        action={words.change}
        savedText={words.changed}
      />
    </Card>
  )
}
