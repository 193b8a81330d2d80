import { Button, Checkbox, Group, Radio, Stack, TextInput } from '@mantine/core'
import { type ReactNode, useState } from 'react'
import type { EndpointHealth } from '../../api/types.ts'
import { useAction } from '../../api/use-action.ts'
import { Dialog } from '../../components/feedback/dialog.tsx'
import { Problem } from '../../components/feedback/problem.tsx'
import { useToast } from '../../components/feedback/toasts.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import { useFormValues } from '../instance/settings/use-form-values.ts'
import { isUrl, UrlField } from './url-field.tsx'
import classes from './webhook.module.css'

export interface EndpointValues {
  url: string
  events: readonly string[]
  description: string | null
}

/** The choice of the events that an endpoint receives. */
export interface EventFilter {
  /** The filter that lets everything through. */
  all: string
  allLabel: string
  /** Chosen at first by people who do not want everything. */
  suggested: readonly string[]
  /** A checkbox for each kind. */
  kinds(events: readonly string[]): ReactNode
}

interface Values {
  url: string
  description: string
  events: readonly string[]
}

interface EndpointFormProps {
  /** Null for a new one. */
  endpoint: Pick<EndpointHealth, 'url' | 'events' | 'description'> | null
  /** Shown above the form of a new one. */
  intro: string
  filter: EventFilter
  /** True: nothing but the URL can be changed. */
  isUrlOnly?: boolean
  /** Called with all values of a new endpoint, and otherwise with those that the person changed. */
  save: (values: Partial<EndpointValues>) => Promise<unknown>
  onClose: () => void
}

/** Adds an endpoint, or changes one. */
export function EndpointForm({ endpoint, intro, filter, isUrlOnly = false, save, onClose }: EndpointFormProps) {
  const words = useWords()
  const toast = useToast()
  const form = useFormValues<Values>({
    url: endpoint?.url ?? '',
    description: endpoint?.description ?? '',
    events: endpoint?.events ?? [filter.all],
  })
  const { url, description, events } = form.values
  const [isTried, setTried] = useState(false)
  const saving = useAction(
    {
      mutationFn: async () => {
        const { url, description, ...rest } = endpoint === null ? form.values : form.changed
        const isUnchanged = endpoint !== null && Object.keys(form.changed).length === 0
        if (isUnchanged) return
        await save({
          ...rest,
          ...(url !== undefined && { url: url.trim() }),
          ...(description !== undefined && { description: description.trim() || null }),
        })
      },
      onSuccess: () => {
        toast(endpoint === null ? words.endpoints.created : words.endpoints.changed)
        onClose()
      },
    },
    { isFinal: true },
  )
  return (
    <Dialog
      opened
      onClose={onClose}
      title={endpoint === null ? words.endpoints.addTitle : words.endpoints.editTitle}
      isBusy={saving.isPending}
    >
      <form
        onSubmit={event => {
          event.preventDefault()
          setTried(true)
          if (isUrl(url) && events.length > 0) saving.mutate()
        }}
      >
        <Stack>
          {endpoint === null && <p className={classes.note}>{intro}</p>}
          <UrlField
            value={url}
            onType={value => form.change('url', value)}
            isTried={isTried}
            description={endpoint && words.webhook.boundNote}
            data-autofocus
          />
          {!isUrlOnly && (
            <>
              <TextInput
                label={words.endpoints.note}
                placeholder={words.endpoints.notePlaceholder}
                value={description}
                maxLength={500}
                onChange={event => form.change('description', event.currentTarget.value)}
              />
              <Filter
                filter={filter}
                events={events}
                onChange={value => form.change('events', value)}
                isTried={isTried}
              />
            </>
          )}
          <Problem error={saving.error} />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose} disabled={saving.isPending}>
              {words.common.cancel}
            </Button>
            <Button type="submit" loading={saving.isPending}>
              {endpoint === null ? words.endpoints.add : words.common.save}
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  )
}

interface FilterProps {
  filter: EventFilter
  events: readonly string[]
  onChange: (events: readonly string[]) => void
  isTried: boolean
}

function Filter({ filter, events, onChange, isTried }: FilterProps) {
  const words = useWords()
  const isAll = events.includes(filter.all)
  return (
    <Stack gap="sm">
      <Radio.Group
        label={words.endpoints.receives}
        value={isAll ? 'all' : 'chosen'}
        onChange={value => onChange(value === 'all' ? [filter.all] : filter.suggested)}
      >
        <Stack mt={6} gap="xs">
          <Radio value="all" label={filter.allLabel} />
          <Radio value="chosen" label={words.endpoints.chosen} />
        </Stack>
      </Radio.Group>
      {!isAll && (
        <Checkbox.Group
          aria-label={words.endpoints.chosen}
          value={[...events]}
          onChange={onChange}
          error={isTried && events.length === 0 && words.endpoints.chooseOne}
        >
          <div className={classes.kinds}>{filter.kinds(events)}</div>
        </Checkbox.Group>
      )}
    </Stack>
  )
}
