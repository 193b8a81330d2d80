import { Button, Group, Radio, Stack, Textarea, TextInput } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { ROLES, type Role } from '../../../../src/domain/access.ts'
import { callData } from '../../api/client.ts'
import { accountsQuery } from '../../api/queries.ts'
import type { Account, InvitedAccount } from '../../api/types.ts'
import { useAction } from '../../api/use-action.ts'
import { CopyField } from '../../components/copy/copy.tsx'
import { Dialog } from '../../components/feedback/dialog.tsx'
import { Problem } from '../../components/feedback/problem.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import { useFormValues } from '../instance/settings/use-form-values.ts'

export type Editing = Account | 'new'

interface AccountDialogProps {
  editing: Editing
  onClose: () => void
  onInvited: (invited: InvitedAccount) => void
}

/** Invites a person, or changes what an account may do. */
export function AccountDialog({ editing, onClose, onInvited }: AccountDialogProps) {
  const words = useWords()
  const client = useQueryClient()
  const [account, setAccount] = useState(editing === 'new' ? null : editing)
  const [name, setName] = useState('')
  const form = useFormValues(account ? valuesOf(account) : NEW)
  const { role, limit, isLimited } = form.values
  const save = useAction(
    {
      mutationFn: async () => {
        if (account) {
          const newest = await client.fetchQuery({ ...accountsQuery, staleTime: 0, retry: false })
          const now = newest.find(one => one.id === account.id) ?? account
          const isChanged = now.role !== account.role || String(now.instances) !== String(account.instances)
          setAccount(now)
          // A save must never give more access than the form showed.
          if (isChanged) throw new ChangedMeanwhile()
          const body = accessOf(form.values)
          const saved = await callData<Account>(`/accounts/${account.id}/access`, { method: 'PUT', body })
          // The dialog may be opened again before the list is read.
          client.setQueryData(accountsQuery.queryKey, list => list?.map(one => (one.id === saved.id ? saved : one)))
        } else
          onInvited(
            await callData<InvitedAccount>('/accounts', {
              method: 'POST',
              body: { name: name.trim(), ...accessOf(form.values) },
            }),
          )
      },
      onSuccess: () => {
        void client.invalidateQueries(accountsQuery)
        onClose()
      },
    },
    { isFinal: true },
  )
  return (
    <Dialog
      opened
      onClose={onClose}
      title={account ? words.people.changeLabel(account.name) : words.people.invite}
      isBusy={save.isPending}
    >
      <form
        onSubmit={event => {
          event.preventDefault()
          save.mutate()
        }}
      >
        <Stack>
          {!account && (
            <TextInput
              label={words.people.name}
              description={words.people.nameHint}
              value={name}
              maxLength={100}
              onChange={event => setName(event.currentTarget.value)}
              autoComplete="off"
              data-autofocus
            />
          )}
          <Radio.Group
            label={words.people.role}
            value={role}
            onChange={value => form.change('role', ROLES.find(known => known === value) ?? 'viewer')}
          >
            <Stack mt={6} gap="sm">
              {ROLES.map(known => (
                <Radio
                  key={known}
                  value={known}
                  label={words.people.roles[known].name}
                  description={words.people.roles[known].text}
                />
              ))}
            </Stack>
          </Radio.Group>
          {role !== 'owner' && (
            <Radio.Group
              label={words.people.reaches}
              value={isLimited ? 'some' : 'all'}
              onChange={value => form.change('isLimited', value === 'some')}
            >
              <Stack mt={6} gap="sm">
                <Radio value="all" label={words.people.allInstances} />
                <Radio value="some" label={words.people.someInstances} />
              </Stack>
            </Radio.Group>
          )}
          {role !== 'owner' && isLimited && (
            <Textarea
              label={words.people.ids}
              description={words.people.idsHint}
              value={limit}
              onChange={event => form.change('limit', event.currentTarget.value)}
              autosize
              minRows={2}
            />
          )}
          {account?.role === 'owner' && role !== 'owner' && <p>{words.people.linksEnd}</p>}
          {account?.panelPassword && role !== 'owner' && <p>{words.people.passwordEnds}</p>}
          <Problem
            error={save.error}
            text={save.error instanceof ChangedMeanwhile ? words.people.changedMeanwhile : undefined}
          />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose} disabled={save.isPending}>
              {words.common.cancel}
            </Button>
            <Button type="submit" loading={save.isPending} disabled={!account && !name.trim()}>
              {account ? words.common.save : words.people.createLink}
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  )
}

/** Somebody else changed the access while the form was open. */
class ChangedMeanwhile extends Error {}

interface Values {
  role: Role
  isLimited: boolean
  /** The IDs of the instances, as text. */
  limit: string
}

const NEW: Values = { role: 'operator', isLimited: false, limit: '' }

/** What the fields show. */
function valuesOf({ role, instances }: Account): Values {
  return { role, isLimited: instances !== null, limit: instances?.join('\n') ?? '' }
}

function accessOf({ role, isLimited, limit }: Values): Pick<Account, 'role' | 'instances'> {
  return { role, instances: role === 'owner' || !isLimited ? null : limit.split(/[\s,]+/).filter(Boolean) }
}

/** Shows the link of an invitation. Only this dialog's memory holds it. */
export function LinkDialog({ invited, onClose }: { invited: InvitedAccount; onClose: () => void }) {
  const words = useWords()
  return (
    <Dialog
      opened
      onClose={onClose}
      title={words.people.linkTitle(invited.account.name)}
      // A click beside the dialog would lose the link.
      closeOnClickOutside={false}
    >
      <Stack>
        <p>{words.people.linkText}</p>
        <CopyField label={words.people.link} value={new URL(invited.url, window.location.origin).href} />
        <Group justify="flex-end">
          <Button onClick={onClose}>{words.token.done}</Button>
        </Group>
      </Stack>
    </Dialog>
  )
}
