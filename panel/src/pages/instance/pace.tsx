import { Button, Group, Stack, Switch, TextInput } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { callData } from '../../api/client.ts'
import { paceQuery } from '../../api/queries.ts'
import type { Pace } from '../../api/types.ts'
import { Problem } from '../../components/feedback/problem.tsx'
import { useToast } from '../../components/feedback/toasts.tsx'
import { Card } from '../../components/panels.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import { useFormStart } from './settings/use-form-start.ts'

/** The limits on how fast the instance sends. */
export function PaceCard({ instanceId }: { instanceId: string }) {
  const words = useWords()
  const { data, error } = useQuery(paceQuery(instanceId))
  const { start, key, ...events } = useFormStart(data)
  return (
    <Card title={words.pace.title} hint={words.pace.hint}>
      {start && <PaceForm key={key} instanceId={instanceId} pace={start} {...events} />}
      <Problem error={error} />
    </Card>
  )
}

interface PaceFormProps {
  instanceId: string
  pace: Pace
  onChange: () => void
  onSaved: () => void
}

function PaceForm({ instanceId, pace, onChange, onSaved }: PaceFormProps) {
  const words = useWords()
  const toast = useToast()
  const client = useQueryClient()
  const [perMinute, setPerMinute] = useState(pace.perMinute?.toString() ?? '')
  const [perDay, setPerDay] = useState(pace.newRecipientsPerDay?.toString() ?? '')
  const [from, setFrom] = useState(pace.quietHours?.from ?? '')
  const [until, setUntil] = useState(pace.quietHours?.until ?? '')
  const [timeZone, setTimeZone] = useState(hasDays(pace) ? pace.timeZone : ownTimeZone())
  const [typing, setTyping] = useState(pace.typing)
  const save = useMutation({
    mutationFn: () => {
      const body = {
        perMinute: numberIn(perMinute),
        newRecipientsPerDay: numberIn(perDay),
        quietHours: from === '' && until === '' ? null : { from, until },
        timeZone: timeZone.trim(),
        typing,
      }
      return callData<Pace>(`/instances/${instanceId}/pace`, { method: 'PUT', body })
    },
    onSuccess: saved => {
      client.setQueryData(paceQuery(instanceId).queryKey, saved)
      onSaved()
      toast(words.pace.saved)
    },
  })
  const texts = words.pace
  return (
    <form
      onChange={onChange}
      onSubmit={event => {
        event.preventDefault()
        save.mutate()
      }}
    >
      <Stack gap="sm">
        <Group grow align="flex-start" preventGrowOverflow={false}>
          <TextInput
            type="number"
            min={1}
            label={texts.perMinute}
            placeholder={texts.noLimit}
            {...bind(perMinute, setPerMinute)}
          />
          <TextInput
            type="number"
            min={0}
            label={texts.perDay}
            placeholder={texts.noLimit}
            {...bind(perDay, setPerDay)}
          />
        </Group>
        <Group grow align="flex-start" preventGrowOverflow={false}>
          <TextInput type="time" label={texts.from} required={until !== ''} {...bind(from, setFrom)} />
          <TextInput type="time" label={texts.until} required={from !== ''} {...bind(until, setUntil)} />
          <TextInput label={texts.timeZone} maxLength={64} required {...bind(timeZone, setTimeZone)} />
        </Group>
        <Switch label={texts.typing} checked={typing} onChange={event => setTyping(event.currentTarget.checked)} />
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

function bind(value: string, set: (value: string) => void) {
  return { value, onChange: (event: { currentTarget: { value: string } }) => set(event.currentTarget.value) }
}

/** True if the time zone of the pace matters. */
function hasDays({ quietHours, newRecipientsPerDay }: Pace): boolean {
  return quietHours !== null || newRecipientsPerDay !== null
}

function ownTimeZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone
}

function numberIn(text: string): number | null {
  return text.trim() === '' ? null : Number(text)
}
