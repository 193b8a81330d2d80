import { useRef } from 'react'
import type { Message } from '../../api/types.ts'
import { sendOnce, usePlaces } from '../../api/unsent.ts'
import { Notice } from '../../components/feedback/notice.tsx'
import { ActOnRows } from '../../components/log/act-on-rows.tsx'
import type { Selection } from '../../components/log/selection.tsx'
import { Recipient } from '../../components/recipients/recipient.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import classes from './messages.module.css'
import { contentOf, extrasOf, formOf } from './send-form.tsx'
import { shownText } from './shown-text.ts'

interface SendMarkedAgainProps {
  instanceId: string
  selection: Selection
  rows: readonly Message[]
}

/** Sends failed messages again, if they are selected and their file could be fetched. */
export function SendMarkedAgain({ instanceId, selection, rows }: SendMarkedAgainProps) {
  const { selection: words } = useWords().tools
  const failed = rows.filter(
    ({ id, error, media, text }) =>
      selection.ids.has(id) && error && (media === undefined ? text !== '' : media.status === undefined),
  )
  const unconfirmed = failed.filter(({ error }) => error?.code === 'unconfirmed').length
  const placeOf = usePlaces(instanceId)
  /** The idempotency keys of the messages that were sent. Until the selection is cleared, no message is sent twice. */
  const sent = useRef(new Map<string, string>())
  const send = async (message: Message) => {
    const { id, to, text, media } = message
    const content = contentOf(to, text, media?.id, extrasOf(message, { to, text, media: media?.id }))
    const { key } = await sendOnce(instanceId, placeOf(formOf(message)), content, sent.current.get(id))
    sent.current.set(id, key)
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
            <Recipient to={message.to} />{' '}
            <span className={classes.text} dir="auto">
              {shownText(message)}
            </span>
          </li>
        ))}
      </ul>
    </ActOnRows>
  )
}
