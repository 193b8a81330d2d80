import { Button, Group, Stack } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { TEST_RECEIVER_URL } from '../../../../src/domain/events/endpoint.ts'
import { callData } from '../../api/client.ts'
import { endpointsQuery } from '../../api/queries.ts'
import type { Webhook } from '../../api/types.ts'
import { useAction } from '../../api/use-action.ts'
import { Problem } from '../../components/feedback/problem.tsx'
import { useToast } from '../../components/feedback/toasts.tsx'
import { Card } from '../../components/panels.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import { isUrl, UrlField } from './url-field.tsx'
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
  const save = useAction({
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
          if (isUrl(url)) save.mutate(url.trim())
        }}
      >
        <Stack gap="md">
          <UrlField value={url} onType={setUrl} description={words.webhook.urlHint} />
          <p className={classes.note}>{words.tools.testReceiverText}</p>
          <Problem error={save.error} />
          <Group>
            <Button type="submit" loading={save.isPending} disabled={!isUrl(url)}>
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
