import { useRef } from 'react'
import { callData } from '../../api/client.ts'
import type { Message } from '../../api/types.ts'
import { Notice } from '../../components/feedback/notice.tsx'
import { ActOnRows } from '../../components/log/act-on-rows.tsx'
import type { Selection } from '../../components/log/selection.tsx'
import { Recipient } from '../../components/recipients/recipient.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import { randomId } from '../../text/random-id.ts'
import classes from './messages.module.css'
import { extrasOf } from './send-form.tsx'
import { shownText } from './shown-text.ts'

interface SendMarkedAgainProps {
  instanceId: string
  selection: Selection
  rows: readonly Message[]
}

/** Sends the marked messages that failed again, except those whose file could not be fetched. */
export function SendMarkedAgain({ instanceId, selection, rows }: SendMarkedAgainProps) {
  const { selection: words } = useWords().tools
  const failed = rows.filter(
    ({ id, error, media, text }) =>
      selection.ids.has(id) && error && (media === undefined ? text !== '' : media.status === undefined),
  )
  const unconfirmed = failed.filter(({ error }) => error?.code === 'unconfirmed').length
  /** One key per message: a call without an answer, repeated, sends nothing twice. */
  const keys = useRef(new Map<string, string>())
  const send = async (message: Message) => {
    const { id, to, text, media } = message
    const idempotencyKey = keys.current.get(id) ?? randomId()
    keys.current.set(id, idempotencyKey)
    const content = { to, ...(text && { text }), ...(media && { media: media.id }) }
    const body = { ...content, ...extrasOf(message, { to, text, media: media?.id }), idempotencyKey }
    await callData(`/instances/${instanceId}/messages`, { method: 'POST', body })
    keys.current.delete(id)
  }
  return (
    <ActOnRows
      selection={selection}
      rows={failed}
      action={words.sendAgain(failed.length)}
      none={words.sendAgainNone}
      act={send}
    >
      <p className={classes.explained}>{words.sendAgainText}</p>
      {unconfirmed > 0 && <Notice tone="wait">{words.unconfirmed(unconfirmed)}</Notice>}
      <ul className={classes.marked}>
        {failed.map(message => (
          <li key={message.id}>
            <Recipient to={message.to} /> <span className={classes.text}>{shownText(message)}</span>
          </li>
        ))}
      </ul>
    </ActOnRows>
  )
}
