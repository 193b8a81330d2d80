import { Button, Group, Stack, Switch, Textarea } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { callData } from '../../../api/client.ts'
import { callsQuery } from '../../../api/queries.ts'
import type { Calls } from '../../../api/types.ts'
import { Problem } from '../../../components/feedback/problem.tsx'
import { useToast } from '../../../components/feedback/toasts.tsx'
import { Card } from '../../../components/panels.tsx'
import { useWords } from '../../../i18n/i18n.tsx'
import { useFormStart } from './use-form-start.ts'

/** What happens to calls to the number. */
export function CallsCard({ instanceId }: { instanceId: string }) {
  const words = useWords()
  const { data, error } = useQuery(callsQuery(instanceId))
  const { start, key, ...events } = useFormStart(data)
  return (
    <Card title={words.calls.title} hint={words.calls.hint}>
      {start && <CallsForm key={key} instanceId={instanceId} calls={start} {...events} />}
      <Problem error={error} />
    </Card>
  )
}

interface CallsFormProps {
  instanceId: string
  calls: Calls
  onChange: () => void
  onSaved: () => void
}

function CallsForm({ instanceId, calls, onChange, onSaved }: CallsFormProps) {
  const words = useWords()
  const { calls: texts } = words
  const toast = useToast()
  const client = useQueryClient()
  const [reject, setReject] = useState(calls.reject)
  const [text, setText] = useState(calls.text ?? '')
  const save = useMutation({
    mutationFn: () => {
      const body = { reject, text: reject && text.trim() !== '' ? text : null }
      return callData<Calls>(`/instances/${instanceId}/calls`, { method: 'PUT', body })
    },
    onSuccess: saved => {
      client.setQueryData(callsQuery(instanceId).queryKey, saved)
      onSaved()
      toast(texts.saved)
    },
  })
  return (
    <form
      onChange={onChange}
      onSubmit={event => {
        event.preventDefault()
        save.mutate()
      }}
    >
      <Stack gap="sm">
        <Switch label={texts.reject} checked={reject} onChange={event => setReject(event.currentTarget.checked)} />
        {reject && (
          <Textarea
            label={texts.text}
            description={texts.textHint}
            placeholder={texts.placeholder}
            value={text}
            autosize
            minRows={2}
            onChange={event => setText(event.currentTarget.value)}
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
