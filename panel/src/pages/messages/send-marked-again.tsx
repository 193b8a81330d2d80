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

interface SendMarkedAgainProps {
  instanceId: string
  selection: Selection
  rows: readonly Message[]
}

/** Sends the marked texts that failed again. */
export function SendMarkedAgain({ instanceId, selection, rows }: SendMarkedAgainProps) {
  const { selection: words } = useWords().tools
  const failed = rows.filter(({ id, error, media, text }) => selection.ids.has(id) && error && !media && text !== '')
  const unconfirmed = failed.filter(({ error }) => error?.code === 'unconfirmed').length
  /** One key per message: a call without an answer, repeated, sends nothing twice. */
  const keys = useRef(new Map<string, string>())
  const send = async ({ id, to, text }: Message) => {
    const idempotencyKey = keys.current.get(id) ?? randomId()
    keys.current.set(id, idempotencyKey)
    await callData(`/instances/${instanceId}/messages`, { method: 'POST', body: { to, text, idempotencyKey } })
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
        {failed.map(({ id, to, text }) => (
          <li key={id}>
            <Recipient to={to} /> <span className={classes.text}>{text}</span>
          </li>
        ))}
      </ul>
    </ActOnRows>
  )
}
