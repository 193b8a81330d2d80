import { Checkbox } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { ALL_EVENTS, DEFAULT_EVENTS } from '../../../../src/domain/events/endpoint.ts'
import { EVENT_KINDS } from '../../../../src/domain/events/event.ts'
import { callData } from '../../api/client.ts'
import { endpointsQuery } from '../../api/queries.ts'
import type { Endpoint, EndpointHealth, Webhook } from '../../api/types.ts'
import { useMay } from '../../api/use-role.ts'
import { useWords } from '../../i18n/i18n.tsx'
import { EndpointForm, type EndpointValues } from './endpoint-form.tsx'

interface EndpointDialogProps {
  instanceId: string
  /** Null for a new one. */
  endpoint: EndpointHealth | null
  onClose: () => void
  onCreated: (endpoint: Endpoint) => void
}

/** Adds an endpoint of an instance, or changes one. */
export function EndpointDialog({ instanceId, endpoint, onClose, onCreated }: EndpointDialogProps) {
  const words = useWords()
  const client = useQueryClient()
  const isOwner = useMay('owner')
  async function save(values: Partial<EndpointValues>): Promise<void> {
    const path = `/instances/${instanceId}/endpoints`
    if (endpoint === null) onCreated(await callData<Endpoint>(path, { method: 'POST', body: values }))
    else if (isOwner) {
      const { url, events, description } = await callData<Endpoint>(`${path}/${endpoint.id}`, {
        method: 'PATCH',
        body: values,
      })
      show({ url, events, description })
    } else {
      // An operator may only set the URL of the default endpoint.
      const body = { url: values.url }
      const { url } = await callData<Webhook>(`/instances/${instanceId}/webhook`, { method: 'PUT', body })
      if (url !== null) show({ url })
    }
    void client.invalidateQueries(endpointsQuery(instanceId))
  }
  /** The dialog may be opened again before the list is read. */
  function show(saved: Partial<EndpointHealth>): void {
    client.setQueryData(endpointsQuery(instanceId).queryKey, list =>
      list?.map(one => (one.id === endpoint?.id ? { ...one, ...saved } : one)),
    )
  }
  return (
    <EndpointForm
      endpoint={endpoint}
      intro={words.endpoints.addText}
      filter={{
        all: ALL_EVENTS,
        allLabel: words.endpoints.everything,
        suggested: DEFAULT_EVENTS,
        kinds: events => <Kinds events={events} />,
      }}
      isUrlOnly={!isOwner}
      save={save}
      onClose={onClose}
    />
  )
}

function Kinds({ events }: { events: readonly string[] }) {
  const words = useWords()
  const isCovered = (kind: string) => events.includes(`${kind.split('.')[0]}.*`)
  return (
    <>
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
    </>
  )
}
