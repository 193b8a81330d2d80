import { Button, Group, Select, Stack, TextInput } from '@mantine/core'
import { type UseMutationResult, useQueryClient } from '@tanstack/react-query'
import { useLayoutEffect, useState } from 'react'
import { callData } from '../../api/client.ts'
import { alertTargetsQuery } from '../../api/queries.ts'
import type { CreatedAlertTarget, NewAlertTarget } from '../../api/types.ts'
import { useAction } from '../../api/use-action.ts'
import { CopyField } from '../../components/copy/copy.tsx'
import { Dialog } from '../../components/feedback/dialog.tsx'
import { Problem } from '../../components/feedback/problem.tsx'
import type { Words } from '../../i18n/en.ts'
import { useWords } from '../../i18n/i18n.tsx'

const CHANNELS = ['ntfy', 'slack', 'discord', 'telegram', 'email', 'webhook'] as const
type Channel = (typeof CHANNELS)[number]

/** Names that are the same in every language. */
const PRODUCTS = { ntfy: 'ntfy', slack: 'Slack', discord: 'Discord', telegram: 'Telegram', webhook: 'Webhook' } as const
const TELEGRAM_URL = 'https://api.telegram.org/bot…/sendMessage'

export function channelName(channel: Channel, words: Words): string {
  return channel === 'email' ? words.alerts.email : PRODUCTS[channel]
}

/** The other fields of each channel. */
const FIELDS: Record<Channel, readonly ('token' | 'chatId' | 'to')[]> = {
  ntfy: ['token'],
  slack: [],
  discord: [],
  telegram: ['chatId'],
  email: ['to'],
  webhook: [],
}

interface AddTargetProps {
  opened: boolean
  onClose: () => void
}

export function AddTarget({ opened, onClose }: AddTargetProps) {
  const words = useWords()
  const client = useQueryClient()
  const [secret, setSecret] = useState<string | null>(null)
  const add = useAction(
    {
      mutationFn: (body: NewAlertTarget) => callData<CreatedAlertTarget>('/alerts/targets', { method: 'POST', body }),
      onSuccess: created => {
        void client.invalidateQueries(alertTargetsQuery)
        if (created.secret === null) close()
        else setSecret(created.secret)
      },
    },
    { isFinal: true },
  )
  const { reset } = add
  useLayoutEffect(() => {
    if (opened) reset()
  }, [opened, reset])
  function close(): void {
    setSecret(null)
    onClose()
  }
  return (
    <Dialog
      opened={opened}
      onClose={close}
      title={secret === null ? words.alerts.add : words.alerts.secret}
      isBusy={add.isPending}
      // A click beside the dialog would lose the secret.
      closeOnClickOutside={secret === null}
    >
      {secret === null ? (
        <Form add={add} onCancel={close} />
      ) : (
        <Stack>
          <p>{words.alerts.secretOnce}</p>
          <CopyField label={words.alerts.secret} value={secret} />
          <Group justify="flex-end">
            <Button onClick={close}>{words.alerts.done}</Button>
          </Group>
        </Stack>
      )}
    </Dialog>
  )
}

interface FormProps {
  add: Pick<UseMutationResult<unknown, Error, NewAlertTarget>, 'mutate' | 'isPending' | 'error'>
  onCancel: () => void
}

function Form({ add, onCancel }: FormProps) {
  const words = useWords()
  const [channel, setChannel] = useState<Channel>('ntfy')
  const [texts, setTexts] = useState<Record<string, string>>({})
  const fields = [...(channel === 'email' ? [] : ['url' as const]), ...FIELDS[channel]]
  const labelOf = (field: (typeof fields)[number]) =>
    field === 'url' && channel !== 'email' ? words.alerts.url[channel] : words.alerts[field === 'url' ? 'to' : field]
  const isComplete = texts['name']?.trim() && fields.every(field => field === 'token' || texts[field]?.trim())
  const set = (field: string, text: string) => setTexts(before => ({ ...before, [field]: text }))
  return (
    <form
      onSubmit={event => {
        event.preventDefault()
        const given = fields.map(field => [field, texts[field]?.trim()] as const).filter(([, text]) => text)
        add.mutate({ channel, name: texts['name']?.trim() ?? '', ...Object.fromEntries(given) })
      }}
    >
      <Stack>
        <TextInput
          label={words.alerts.name}
          placeholder={words.alerts.namePlaceholder}
          value={texts['name'] ?? ''}
          maxLength={100}
          onChange={event => set('name', event.currentTarget.value)}
          data-autofocus
        />
        <Select
          label={words.alerts.channel}
          value={channel}
          onChange={value => setChannel(CHANNELS.find(one => one === value) ?? 'ntfy')}
          data={CHANNELS.map(value => ({ value, label: channelName(value, words) }))}
          allowDeselect={false}
        />
        {fields.map(field => (
          <TextInput
            key={field}
            label={labelOf(field)}
            placeholder={channel === 'telegram' && field === 'url' ? TELEGRAM_URL : undefined}
            value={texts[field] ?? ''}
            maxLength={2_048}
            autoComplete="off"
            onChange={event => set(field, event.currentTarget.value)}
          />
        ))}
        <Problem error={add.error} />
        <Group justify="flex-end">
          <Button variant="default" onClick={onCancel} disabled={add.isPending}>
            {words.common.cancel}
          </Button>
          <Button type="submit" loading={add.isPending} disabled={!isComplete}>
            {words.alerts.add}
          </Button>
        </Group>
      </Stack>
    </form>
  )
}
