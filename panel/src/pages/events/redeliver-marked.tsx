import { call } from '../../api/client.ts'
import type { Event } from '../../api/types.ts'
import { ActOnRows } from '../../components/log/act-on-rows.tsx'
import type { Selection } from '../../components/log/selection.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import classes from './redeliver-many.module.css'

interface RedeliverMarkedProps {
  instanceId: string
  selection: Selection
  rows: readonly Event[]
}

/** Retries immediately the selected events that wait for a retry, and redelivers those whose delivery has ended. */
export function RedeliverMarked({ instanceId, selection, rows }: RedeliverMarkedProps) {
  const { selection: words } = useWords().tools
  const marked = rows.filter(({ id }) => selection.ids.has(id))
  const possible = marked.filter(event => waitsForRetry(event) || isOver(event))
  const act = (event: Event) => {
    const path = waitsForRetry(event) ? `deliveries/${event.delivery?.id}/retry` : `events/${event.id}/redeliver`
    return call(`/instances/${instanceId}/${path}`, { method: 'POST' })
  }
  const onTheWay = marked.length - possible.length
  return (
    <ActOnRows
      selection={selection}
      rows={possible}
      action={words.redeliver(possible.length)}
      none={words.redeliverNone}
      act={act}
    >
      <p className={classes.hint}>{words.redeliverText}</p>
      {onTheWay > 0 && <p className={classes.hint}>{words.onTheWay(onTheWay)}</p>}
    </ActOnRows>
  )
}

function waitsForRetry({ delivery }: Event): boolean {
  return delivery?.state === 'pending' && delivery.attemptCount > 0
}

function isOver({ delivery }: Event): boolean {
  return delivery === null || delivery.state === 'delivered' || delivery.state === 'exhausted'
}
