import { Button, Group, Stack, Switch, TextInput } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { callData } from '../../api/client.ts'
import { paceQuery } from '../../api/queries.ts'
import type { Pace } from '../../api/types.ts'
import { Problem } from '../../components/feedback/problem.tsx'
import { useToast } from '../../components/feedback/toasts.tsx'
import { Card } from '../../components/panels.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import { useFormValues } from './settings/use-form-values.ts'

/** The limits on how fast the instance sends. */
export function PaceCard({ instanceId }: { instanceId: string }) {
  const words = useWords()
  const { data, error } = useQuery(paceQuery(instanceId))
  return (
    <Card title={words.pace.title} hint={words.pace.hint}>
      {data && <PaceForm instanceId={instanceId} pace={data} />}
      <Problem error={error} />
    </Card>
  )
}

function PaceForm({ instanceId, pace }: { instanceId: string; pace: Pace }) {
  const words = useWords()
  const toast = useToast()
  const client = useQueryClient()
  const form = useFormValues(valuesOf(pace))
  const { values } = form
  const save = useMutation({
    mutationFn: async (changed: Partial<Values>) => {
      // The call replaces all fields.
      const newest = await client.fetchQuery({ ...paceQuery(instanceId), staleTime: 0, retry: false })
      const body = paceOf({ ...valuesOf(newest), ...changed })
      return callData<Pace>(`/instances/${instanceId}/pace`, { method: 'PUT', body })
    },
    onSuccess: (saved, changed) => {
      client.setQueryData(paceQuery(instanceId).queryKey, saved)
      form.onSaved(changed)
      toast(words.pace.saved)
    },
  })
  const bind = (field: Exclude<keyof Values, 'typing'>) => ({
    value: values[field],
    onChange: (event: { currentTarget: { value: string } }) => form.change(field, event.currentTarget.value),
  })
  const texts = words.pace
  return (
    <form
      onSubmit={event => {
        event.preventDefault()
        save.mutate(form.changed)
      }}
    >
      <Stack gap="sm">
        <Group grow align="flex-start" preventGrowOverflow={false}>
          <TextInput type="number" min={1} label={texts.perMinute} placeholder={texts.noLimit} {...bind('perMinute')} />
          <TextInput type="number" min={0} label={texts.perDay} placeholder={texts.noLimit} {...bind('perDay')} />
        </Group>
        <Group grow align="flex-start" preventGrowOverflow={false}>
          <TextInput type="time" label={texts.from} required={values.until !== ''} {...bind('from')} />
          <TextInput type="time" label={texts.until} required={values.from !== ''} {...bind('until')} />
          <TextInput label={texts.timeZone} maxLength={64} required {...bind('timeZone')} />
        </Group>
        <Switch
          label={texts.typing}
          checked={values.typing}
          onChange={event => form.change('typing', event.currentTarget.checked)}
        />
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
function valuesOf(pace: Pace) {
  return {
    perMinute: pace.perMinute?.toString() ?? '',
    perDay: pace.newRecipientsPerDay?.toString() ?? '',
    from: pace.quietHours?.from ?? '',
    until: pace.quietHours?.until ?? '',
    timeZone: hasDays(pace) ? pace.timeZone : ownTimeZone(),
    typing: pace.typing,
  }
}

function paceOf({ perMinute, perDay, from, until, timeZone, typing }: Values): Pace {
  return {
    perMinute: numberIn(perMinute),
    newRecipientsPerDay: numberIn(perDay),
    quietHours: from === '' && until === '' ? null : { from, until },
    timeZone: timeZone.trim(),
    typing,
  }
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
