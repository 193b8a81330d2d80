import { Button, Group, Stack, Switch, Textarea } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { callData } from '../../../api/client.ts'
import { callsQuery } from '../../../api/queries.ts'
import type { Calls } from '../../../api/types.ts'
import { Problem } from '../../../components/feedback/problem.tsx'
import { useToast } from '../../../components/feedback/toasts.tsx'
import { Card } from '../../../components/panels.tsx'
import { useWords } from '../../../i18n/i18n.tsx'
import { useFormValues } from './use-form-values.ts'

/** What happens to calls to the number. */
export function CallsCard({ instanceId }: { instanceId: string }) {
  const words = useWords()
  const { data, error } = useQuery(callsQuery(instanceId))
  return (
    <Card title={words.calls.title} hint={words.calls.hint}>
      {data && <CallsForm instanceId={instanceId} calls={data} />}
      <Problem error={error} />
    </Card>
  )
}

function CallsForm({ instanceId, calls }: { instanceId: string; calls: Calls }) {
  const words = useWords()
  const { calls: texts } = words
  const toast = useToast()
  const client = useQueryClient()
  const form = useFormValues(valuesOf(calls))
  const { reject, text } = form.values
  const save = useMutation({
    mutationFn: async (changed: Partial<Values>) => {
      // The call replaces both fields.
      const newest = await client.fetchQuery({ ...callsQuery(instanceId), staleTime: 0, retry: false })
      const { reject, text } = { ...valuesOf(newest), ...changed }
      const body = { reject, text: reject && text.trim() !== '' ? text : null }
      return callData<Calls>(`/instances/${instanceId}/calls`, { method: 'PUT', body })
    },
    onSuccess: (saved, changed) => {
      client.setQueryData(callsQuery(instanceId).queryKey, saved)
      // Somebody else has switched rejecting off meanwhile: the text is not saved, and stays for when it is on again.
      const isTextLeft = changed.text !== undefined && changed.reject === undefined && !saved.reject
      if (isTextLeft) return
      form.onSaved(changed)
      toast(texts.saved)
    },
  })
  return (
    <form
      onSubmit={event => {
        event.preventDefault()
        save.mutate(form.changed)
      }}
    >
      <Stack gap="sm">
        <Switch
          label={texts.reject}
          checked={reject}
          onChange={event => form.change('reject', event.currentTarget.checked)}
        />
        {reject && (
          <Textarea
            label={texts.text}
            description={texts.textHint}
            placeholder={texts.placeholder}
            value={text}
            autosize
            minRows={2}
            onChange={event => form.change('text', event.currentTarget.value)}
          />
        )}
        <Group>
          <Button type="submit" variant="default" loading={save.isPending}>
            {words.common.save}
          </Button>
        </Group>
        <Problem error={save.error} />
      </Stack>
    </form>
  )
}

type Values = ReturnType<typeof valuesOf>

/** What the fields show. */
function valuesOf({ reject, text }: Calls) {
  return { reject, text: text ?? '' }
}
