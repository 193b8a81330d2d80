import { Button, Checkbox, Group, Modal, Radio, Stack, TextInput } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { OPERATOR_EVENTS } from '../../../../src/domain/events/endpoint.ts'
import { INSTANCE_EVENT_KINDS } from '../../../../src/domain/events/event.ts'
import { callData } from '../../api/client.ts'
import { operatorEndpointsQuery } from '../../api/queries.ts'
import type { OperatorEndpoint } from '../../api/types.ts'
import { Problem } from '../../components/feedback/problem.tsx'
import { useToast } from '../../components/feedback/toasts.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import { isUrl, UrlField } from '../webhook/url-field.tsx'
import classes from './alerts.module.css'

interface OperatorDialogProps {
  /** Null for a new one. */
  endpoint: OperatorEndpoint | null
  onClose: () => void
  onCreated: (endpoint: OperatorEndpoint) => void
}

/** Adds an endpoint for all instances, or changes one. */
export function OperatorDialog({ endpoint, onClose, onCreated }: OperatorDialogProps) {
  const words = useWords()
  const toast = useToast()
  const client = useQueryClient()
  const [url, setUrl] = useState(endpoint?.url ?? '')
  const [note, setNote] = useState(endpoint?.description ?? '')
  const [events, setEvents] = useState<readonly string[]>(endpoint?.events ?? [OPERATOR_EVENTS])
  const [isTried, setTried] = useState(false)
  const isAll = events.includes(OPERATOR_EVENTS)
  const save = useMutation({
    mutationFn: () => {
      const body = { url: url.trim(), events, description: note.trim() || null }
      if (endpoint === null) return callData<OperatorEndpoint>('/endpoints', { method: 'POST', body })
      return callData<OperatorEndpoint>(`/endpoints/${endpoint.id}`, { method: 'PATCH', body })
    },
    onSuccess: async saved => {
      toast(endpoint === null ? words.endpoints.created : words.endpoints.changed)
      if (endpoint === null) onCreated(saved)
      await client.invalidateQueries(operatorEndpointsQuery)
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
          {endpoint === null && <p className={classes.note}>{words.operatorEndpoints.addText}</p>}
          <UrlField
            value={url}
            onType={setUrl}
            isTried={isTried}
            description={endpoint && words.webhook.boundNote}
            data-autofocus
          />
          <TextInput
            label={words.endpoints.note}
            placeholder={words.endpoints.notePlaceholder}
            value={note}
            maxLength={500}
            onChange={event => setNote(event.currentTarget.value)}
          />
          <Radio.Group
            label={words.endpoints.receives}
            value={isAll ? 'all' : 'chosen'}
            onChange={value => setEvents(value === 'all' ? [OPERATOR_EVENTS] : INSTANCE_EVENT_KINDS)}
          >
            <Stack mt={6} gap="xs">
              <Radio value="all" label={words.operatorEndpoints.everything} />
              <Radio value="chosen" label={words.endpoints.chosen} />
            </Stack>
          </Radio.Group>
          {!isAll && (
            <Checkbox.Group
              aria-label={words.endpoints.chosen}
              value={[...events]}
              onChange={setEvents}
              error={isTried && events.length === 0 && words.endpoints.chooseOne}
            >
              <Stack gap="xs">
                {INSTANCE_EVENT_KINDS.map(kind => (
                  <Checkbox key={kind} value={kind} label={<code>{kind}</code>} />
                ))}
              </Stack>
            </Checkbox.Group>
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
