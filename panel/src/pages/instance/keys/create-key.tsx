import { Button, Checkbox, Group, Select, Stack, TextInput } from '@mantine/core'
import { type UseMutationResult, useQueryClient } from '@tanstack/react-query'
import { useLayoutEffect, useState } from 'react'
import { SCOPES, type Scope } from '../../../../../src/domain/access.ts'
import { callData } from '../../../api/client.ts'
import { keysQuery } from '../../../api/queries.ts'
import { serverNow } from '../../../api/server-clock.ts'
import type { CreatedApiKey } from '../../../api/types.ts'
import { useAction } from '../../../api/use-action.ts'
import { CopyField } from '../../../components/copy/copy.tsx'
import { Dialog } from '../../../components/feedback/dialog.tsx'
import { Problem } from '../../../components/feedback/problem.tsx'
import { useWords } from '../../../i18n/i18n.tsx'

const DAY_MS = 24 * 60 * 60_000
/** Days until a key expires; 0 for never. */
const LIFETIMES = [0, 30, 90, 365] as const

interface CreateKeyProps {
  instanceId: string
  opened: boolean
  onClose: () => void
}

/** Asks for a name, scopes and lifetime, then shows the key. Only this dialog's memory holds it. */
export function CreateKey({ instanceId, opened, onClose }: CreateKeyProps) {
  const words = useWords()
  const client = useQueryClient()
  const [created, setCreated] = useState<string | null>(null)
  const create = useAction(
    {
      mutationFn: (body: NewKey) => callData<CreatedApiKey>(`/instances/${instanceId}/keys`, { method: 'POST', body }),
      onSuccess: ({ key }) => {
        void client.invalidateQueries(keysQuery(instanceId))
        setCreated(key)
      },
    },
    { isFinal: true },
  )
  const { reset } = create
  useLayoutEffect(() => {
    if (opened) reset()
  }, [opened, reset])
  function close(): void {
    setCreated(null)
    onClose()
  }
  return (
    <Dialog
      opened={opened}
      onClose={close}
      title={created === null ? words.keys.create : words.keys.createdTitle}
      isBusy={create.isPending}
      // A click beside the dialog would lose the key.
      closeOnClickOutside={created === null}
    >
      {created === null ? (
        <Form create={create} onCancel={close} />
      ) : (
        <Stack>
          <p>{words.keys.once}</p>
          <CopyField label={words.keys.key} value={created} />
          <Group justify="flex-end">
            <Button onClick={close}>{words.token.done}</Button>
          </Group>
        </Stack>
      )}
    </Dialog>
  )
}

interface NewKey {
  name: string
  scopes: string[]
  expiresAt: string | null
}

interface FormProps {
  create: Pick<UseMutationResult<unknown, Error, NewKey>, 'mutate' | 'isPending' | 'error'>
  onCancel: () => void
}

function Form({ create, onCancel }: FormProps) {
  const words = useWords()
  const [name, setName] = useState('')
  const [scopes, setScopes] = useState<string[]>(['send'])
  const [days, setDays] = useState(0)
  return (
    <form
      onSubmit={event => {
        event.preventDefault()
        const expiresAt = days === 0 ? null : new Date(serverNow() + days * DAY_MS).toISOString()
        create.mutate({ name: name.trim(), scopes, expiresAt })
      }}
    >
      <Stack>
        <TextInput
          label={words.keys.name}
          description={words.keys.nameHint}
          placeholder={words.keys.namePlaceholder}
          value={name}
          maxLength={100}
          onChange={event => setName(event.currentTarget.value)}
          data-autofocus
        />
        <Checkbox.Group label={words.keys.mayDo} value={scopes} onChange={setScopes}>
          <Stack mt={6} gap={6}>
            {SCOPES.map((scope: Scope) => (
              <Checkbox key={scope} value={scope} label={words.keys.scopes[scope]} />
            ))}
          </Stack>
        </Checkbox.Group>
        <Select
          label={words.keys.lifetime}
          value={String(days)}
          onChange={value => setDays(Number(value))}
          data={LIFETIMES.map(count => ({ value: String(count), label: words.keys.lifetimes(count) }))}
          allowDeselect={false}
        />
        <Problem error={create.error} />
        <Group justify="flex-end">
          <Button variant="default" onClick={onCancel} disabled={create.isPending}>
            {words.common.cancel}
          </Button>
          <Button type="submit" loading={create.isPending} disabled={!name.trim() || scopes.length === 0}>
            {words.keys.createAction}
          </Button>
        </Group>
      </Stack>
    </form>
  )
}
