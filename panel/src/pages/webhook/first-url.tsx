import { Button, Group, Stack, TextInput } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { TEST_RECEIVER_URL } from '../../../../src/domain/events/endpoint.ts'
import { callData } from '../../api/client.ts'
import { endpointsQuery } from '../../api/queries.ts'
import type { Webhook } from '../../api/types.ts'
import { Problem } from '../../components/feedback/problem.tsx'
import { useToast } from '../../components/feedback/toasts.tsx'
import { Card } from '../../components/panels.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import { isUrl } from './is-url.ts'
import classes from './webhook.module.css'

interface FirstUrlProps {
  instanceId: string
  /** The secret is null for everybody but owners. */
  onSet: (webhook: Webhook) => void
}

/** Sets the URL of the default endpoint. Shown while the instance has no endpoint. */
export function FirstUrl({ instanceId, onSet }: FirstUrlProps) {
  const words = useWords()
  const toast = useToast()
  const client = useQueryClient()
  const [url, setUrl] = useState('')
  const [isLeft, setLeft] = useState(false)
  const trimmed = url.trim()
  const isWrong = trimmed !== '' && !isUrl(trimmed)
  const save = useMutation({
    mutationFn: (to: string) =>
      callData<Webhook>(`/instances/${instanceId}/webhook`, { method: 'PUT', body: { url: to } }),
    onSuccess: async webhook => {
      toast(words.webhook.saved)
      onSet(webhook)
      await client.invalidateQueries(endpointsQuery(instanceId))
    },
  })
  return (
    <Card>
      <form
        onSubmit={event => {
          event.preventDefault()
          setLeft(true)
          if (trimmed && !isWrong) save.mutate(trimmed)
        }}
      >
        <Stack gap="md">
          <TextInput
            label={words.webhook.url}
            description={words.webhook.urlHint}
            placeholder="https://example.com/webhooks/pombal"
            inputMode="url"
            value={url}
            maxLength={2048}
            spellCheck={false}
            autoComplete="off"
            onChange={event => setUrl(event.currentTarget.value)}
            onBlur={() => setLeft(true)}
            error={isLeft && isWrong && words.webhook.urlWrong}
          />
          <p className={classes.note}>{words.tools.testReceiverText}</p>
          <Problem error={save.error} />
          <Group>
            <Button type="submit" loading={save.isPending} disabled={!trimmed || isWrong}>
              {words.webhook.save}
            </Button>
            <Button variant="subtle" onClick={() => save.mutate(TEST_RECEIVER_URL)}>
              {words.tools.steps.receiveAction}
            </Button>
          </Group>
        </Stack>
      </form>
    </Card>
  )
}
