import { Checkbox } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { OPERATOR_EVENTS } from '../../../../src/domain/events/endpoint.ts'
import { INSTANCE_EVENT_KINDS } from '../../../../src/domain/events/event.ts'
import { callData } from '../../api/client.ts'
import { operatorEndpointsQuery } from '../../api/queries.ts'
import type { OperatorEndpoint } from '../../api/types.ts'
import { useWords } from '../../i18n/i18n.tsx'
import { EndpointForm, type EndpointValues } from '../webhook/endpoint-form.tsx'

interface OperatorDialogProps {
  /** Null for a new one. */
  endpoint: OperatorEndpoint | null
  onClose: () => void
  onCreated: (endpoint: OperatorEndpoint) => void
}

/** Adds an endpoint for all instances, or changes one. */
export function OperatorDialog({ endpoint, onClose, onCreated }: OperatorDialogProps) {
  const words = useWords()
  const client = useQueryClient()
  async function save(body: Partial<EndpointValues>): Promise<void> {
    if (endpoint === null) onCreated(await callData<OperatorEndpoint>('/endpoints', { method: 'POST', body }))
    else {
      const saved = await callData<OperatorEndpoint>(`/endpoints/${endpoint.id}`, { method: 'PATCH', body })
      // The dialog may be opened again before the list is read.
      client.setQueryData(operatorEndpointsQuery.queryKey, list =>
        list?.map(one => (one.id === saved.id ? saved : one)),
      )
    }
    void client.invalidateQueries(operatorEndpointsQuery)
  }
  return (
    <EndpointForm
      endpoint={endpoint}
      intro={words.operatorEndpoints.addText}
      filter={{
        all: OPERATOR_EVENTS,
        allLabel: words.operatorEndpoints.everything,
        suggested: INSTANCE_EVENT_KINDS,
        kinds: () => INSTANCE_EVENT_KINDS.map(kind => <Checkbox key={kind} value={kind} label={<code>{kind}</code>} />),
      }}
      save={save}
      onClose={onClose}
    />
  )
}
