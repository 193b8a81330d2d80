import { Button, Checkbox, Group, Modal, Radio, Stack, TextInput } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { ALL_EVENTS, DEFAULT_EVENTS } from '../../../../src/domain/events/endpoint.ts'
import { EVENT_KINDS } from '../../../../src/domain/events/event.ts'
import { callData } from '../../api/client.ts'
import { endpointsQuery } from '../../api/queries.ts'
import type { Endpoint, EndpointHealth } from '../../api/types.ts'
import { useMay } from '../../api/use-role.ts'
import { Problem } from '../../components/feedback/problem.tsx'
import { useToast } from '../../components/feedback/toasts.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import { isUrl, UrlField } from './url-field.tsx'
import classes from './webhook.module.css'

interface EndpointDialogProps {
  instanceId: string
  /** Null for a new one. */
  endpoint: EndpointHealth | null
  onClose: () => void
  onCreated: (endpoint: Endpoint) => void
}

/** Adds an endpoint, or changes one. */
export function EndpointDialog({ instanceId, endpoint, onClose, onCreated }: EndpointDialogProps) {
  const words = useWords()
  const toast = useToast()
  const client = useQueryClient()
  const [url, setUrl] = useState(endpoint?.url ?? '')
  const [note, setNote] = useState(endpoint?.description ?? '')
  const [events, setEvents] = useState<readonly string[]>(endpoint?.events ?? [ALL_EVENTS])
  const [isTried, setTried] = useState(false)
  const isOwner = useMay('owner')
  const save = useMutation({
    mutationFn: () => {
      // An operator may only set the URL of the default endpoint.
      if (!isOwner) return callData(`/instances/${instanceId}/webhook`, { method: 'PUT', body: { url: url.trim() } })
      const body = { url: url.trim(), events, description: note.trim() || null }
      const path = `/instances/${instanceId}/endpoints`
      if (endpoint === null) return callData(path, { method: 'POST', body })
      return callData(`${path}/${endpoint.id}`, { method: 'PATCH', body })
    },
    onSuccess: async saved => {
      toast(endpoint === null ? words.endpoints.created : words.endpoints.changed)
      if (endpoint === null) onCreated(saved as Endpoint)
      await client.invalidateQueries(endpointsQuery(instanceId))
      onClose()
    },
  })
  return (
    <Modal
      opened
      onClose={onClose}
      title={endpoint === null ? words.endpoints.addTitle : words.endpoints.editTitle}
      closeButtonProps={{ 'aria-label': words.common.close }}
    >
      <form
        onSubmit={event => {
          event.preventDefault()
          setTried(true)
          if (isUrl(url) && events.length > 0) save.mutate()
        }}
      >
        <Stack>
          {endpoint === null && <p className={classes.note}>{words.endpoints.addText}</p>}
          <UrlField
            value={url}
            onType={setUrl}
            isTried={isTried}
            description={endpoint && words.webhook.boundNote}
            data-autofocus
          />
          {isOwner && (
            <>
              <TextInput
                label={words.endpoints.note}
                placeholder={words.endpoints.notePlaceholder}
                value={note}
                maxLength={500}
                onChange={event => setNote(event.currentTarget.value)}
              />
              <Filter events={events} onChange={setEvents} isTried={isTried} />
            </>
          )}
          <Problem error={save.error} />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              {words.common.cancel}
            </Button>
            <Button type="submit" loading={save.isPending}>
              {endpoint === null ? words.endpoints.add : words.common.save}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}

interface FilterProps {
  events: readonly string[]
  onChange: (events: readonly string[]) => void
  isTried: boolean
}

function Filter({ events, onChange, isTried }: FilterProps) {
  const words = useWords()
  const isAll = events.includes(ALL_EVENTS)
  const isCovered = (kind: string) => events.includes(`${kind.split('.')[0]}.*`)
  return (
    <Stack gap="sm">
      <Radio.Group
        label={words.endpoints.receives}
        value={isAll ? 'all' : 'chosen'}
        onChange={value => onChange(value === 'all' ? [ALL_EVENTS] : DEFAULT_EVENTS)}
      >
        <Stack mt={6} gap="xs">
          <Radio value="all" label={words.endpoints.everything} />
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
          <div className={classes.kinds}>
            <Checkbox value="message.*" label={words.endpoints.allMessages} />
            <Checkbox value="instance.*" label={words.endpoints.allInstance} />
            <Checkbox value="media.*" label={words.endpoints.allMedia} />
            <Checkbox value="group.*" label={words.endpoints.allGroups} />
            {EVENT_KINDS.map(kind => (
              <Checkbox
                key={kind}
                value={kind}
                label={<code>{kind}</code>}
                disabled={isCovered(kind)}
                {...(isCovered(kind) && { checked: true })}
              />
            ))}
          </div>
        </Checkbox.Group>
      )}
    </Stack>
  )
}
