import { Button, CloseButton } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { isTestReceiver, TEST_RECEIVER_URL } from '../../../../src/domain/events/endpoint.ts'
import { call, callData } from '../../api/client.ts'
import { endpointsQuery, listPage } from '../../api/queries.ts'
import { serverNow } from '../../api/server-clock.ts'
import type { Event, Instance } from '../../api/types.ts'
import { useAction } from '../../api/use-action.ts'
import { Problem } from '../../components/feedback/problem.tsx'
import { CheckIcon } from '../../components/icons.tsx'
import { Card } from '../../components/panels.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import { readStored, store } from '../../storage.ts'
import classes from './first-steps.module.css'

const HIDDEN = 'pombal.steps.hidden'
const HOUR_MS = 3_600_000

interface Step {
  name: string
  text: string
  isDone: boolean
  action?: ReactNode
}

/** Leads a newcomer from the first message to a program of their own. Hidden once everything is done. */
export function FirstSteps({ instance }: { instance: Instance }) {
  const words = useWords()
  const { steps: texts } = words.tools
  const [isHidden, setHidden] = useState(() => readStored('localStorage', HIDDEN) !== null)
  const params = { id: instance.id }
  const { data: endpoints } = useQuery(endpointsQuery(instance.id))
  const sent = useFirst(instance.id, 'message', 'messages', {})
  // The endpoint that accepted an event, if any did.
  const accepted = endpoints?.filter(({ deliveries }) => deliveries.lastDeliveredAt !== null) ?? []
  const endpoint = (accepted[0] ?? endpoints?.[0])?.id
  const found = useFirst(instance.id, 'event', 'events', { state: 'delivered', endpoint }, endpoint !== undefined)
  const useReceiver = useTestReceiver(instance.id)
  // If the instance has no endpoint, its events may still go to the endpoints for all instances.
  const delivered = endpoints?.length === 0 ? null : found
  if (isHidden || !endpoints || sent === undefined || delivered === undefined) return null
  const hasProgram = endpoints.some(({ url }) => !isTestReceiver(url))
  const steps: Step[] = [
    { name: texts.connect, text: texts.connectText, isDone: instance.phone !== null && !isDown(instance) },
    { name: texts.send, text: texts.sendText, isDone: sent !== null },
    {
      name: texts.receive,
      text: endpoints.length === 0 ? texts.receiveText : texts.receiveLater,
      isDone: delivered !== null,
      action: delivered ? (
        <Link to="/instances/$id/events" params={params} search={{ open: delivered.id }}>
          {texts.lookAction}
        </Link>
      ) : (
        endpoints.length === 0 && (
          <Button size="compact-sm" onClick={() => useReceiver.mutate()} loading={useReceiver.isPending}>
            {texts.receiveAction}
          </Button>
        )
      ),
    },
    {
      name: texts.program,
      text: hasProgram ? texts.programLater : texts.programText,
      isDone: accepted.some(({ url }) => !isTestReceiver(url)),
      action: !hasProgram && (
        <Link to="/instances/$id/webhook" params={params}>
          {texts.programAction}
        </Link>
      ),
    },
  ]
  const done = steps.filter(({ isDone }) => isDone).length
  if (done === steps.length) return null
  const hide = () => {
    store('localStorage', HIDDEN, '1')
    setHidden(true)
  }
  return (
    <Card
      title={texts.title}
      hint={texts.done(done, steps.length)}
      action={<CloseButton aria-label={texts.hide} onClick={hide} />}
    >
      <ol className={classes.steps}>
        {steps.map(({ name, text, isDone, action }) => (
          <li key={name} data-done={isDone}>
            <span className={classes.mark} aria-hidden>
              {isDone && <CheckIcon size={14} />}
            </span>
            <div>
              <strong>{name}</strong>
              {isDone && <span className="visually-hidden"> ✓</span>}
              {!isDone && <p className={classes.text}>{text}</p>}
              {action}
            </div>
          </li>
        ))}
      </ol>
      <Problem error={useReceiver.error} />
    </Card>
  )
}

/** A number that somebody has to bring back. */
function isDown({ state }: Instance): boolean {
  return state === 'stopped' || state === 'logged_out'
}

/** The newest row of a list; null if it is empty, undefined until it is known. A change of the log reads it again. */
function useFirst(
  id: string,
  key: 'message' | 'event',
  list: string,
  query: Record<string, string | undefined>,
  enabled = true,
): Event | null | undefined {
  const { data } = useQuery({
    queryKey: [key, id, 'newest', query],
    queryFn: ({ signal }) => listPage<Event>(`/instances/${id}/${list}`, { ...query, limit: 1 }, signal),
    enabled,
  })
  return data && (data.data[0] ?? null)
}

/** Posts new events to the test receiver, and also the events of the last hour that were not posted. */
function useTestReceiver(instanceId: string) {
  const client = useQueryClient()
  return useAction({
    mutationFn: async () => {
      const path = `/instances/${instanceId}`
      await callData(`${path}/webhook`, { method: 'PUT', body: { url: TEST_RECEIVER_URL } })
      await client.invalidateQueries(endpointsQuery(instanceId))
      const since = new Date(serverNow() - HOUR_MS).toISOString()
      await call(`${path}/events/redeliver`, { method: 'POST', body: { since, state: 'not_posted' } })
    },
  })
}
