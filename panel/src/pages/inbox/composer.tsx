import { Button, Textarea } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import { ApiError, call } from '../../api/client.ts'
import type { ChatLine } from '../../api/types.ts'
import { Notice } from '../../components/feedback/notice.tsx'
import { Problem } from '../../components/feedback/problem.tsx'
import { SendIcon } from '../../components/icons.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import { randomId } from '../../text/random-id.ts'
import classes from './inbox.module.css'
import { authorOf, previewOf } from './lines.ts'

const MAX_TEXT = 65_536

/** The purpose of the field. */
export type Writing = { kind: 'new' } | { kind: 'answer' | 'edit'; line: ChatLine }

interface ComposerProps {
  instanceId: string
  chat: string
  name: string
  writing: Writing
  /** The answer or edit was sent or given up. */
  onDone: () => void
  drafts: Map<string, string>
}

/** Writes a message to the chat, answers one, or edits one. */
export function Composer({ instanceId, chat, name, writing, onDone, drafts }: ComposerProps) {
  const words = useWords()
  const [text, setText] = useState(drafts.get(chat) ?? '')
  const field = useRef<HTMLTextAreaElement>(null)
  /** One key per message: a repeated click or a lost answer sends nothing twice. */
  const key = useRef({ for: '', value: '' })
  const edited = writing.kind === 'edit' ? writing.line : null
  useEffect(() => {
    setText(edited === null ? (drafts.get(chat) ?? '') : (edited.text ?? ''))
  }, [edited, drafts, chat])
  // biome-ignore lint/correctness/useExhaustiveDependencies: the field takes the focus when its purpose changes
  useEffect(() => field.current?.focus(), [writing])

  const send = useMutation({
    mutationFn: () => {
      if (edited) return call(`/instances/${instanceId}/messages/${edited.id}`, { method: 'PATCH', body: { text } })
      const quote = writing.kind === 'answer' ? writing.line.id : undefined
      const message = JSON.stringify([chat, text, quote])
      if (key.current.for !== message) key.current = { for: message, value: randomId() }
      const body = { to: chat, text, quote, idempotencyKey: key.current.value }
      return call(`/instances/${instanceId}/messages`, { method: 'POST', body })
    },
    onSuccess: () => {
      key.current = { for: '', value: '' }
      if (!edited) {
        drafts.delete(chat)
        setText('')
      }
      onDone()
    },
  })
  const isUnanswered = !edited && send.error instanceof ApiError && send.error.code === 'unreachable'
  const stop = () => {
    send.reset()
    onDone()
  }
  const submit = () => {
    if (text.trim() !== '' && !send.isPending) send.mutate()
  }
  return (
    <form
      className={classes.composer}
      onSubmit={event => {
        event.preventDefault()
        submit()
      }}
    >
      {writing.kind !== 'new' && (
        <div className={classes.about}>
          <div className={classes.aboutText}>
            <strong>
              {edited ? words.inbox.editingTitle : words.inbox.answering(authorOf(writing.line) ?? words.inbox.you)}
            </strong>
            <span>{previewOf(writing.line, words)}</span>
          </div>
          <Button variant="subtle" size="compact-sm" onClick={stop}>
            {words.inbox.stop}
          </Button>
        </div>
      )}
      <Textarea
        ref={field}
        className={classes.field}
        aria-label={edited ? words.inbox.editingTitle : words.inbox.text(name)}
        placeholder={words.inbox.placeholder}
        title={words.inbox.help}
        autosize
        minRows={1}
        maxRows={6}
        maxLength={MAX_TEXT}
        readOnly={send.isPending}
        value={text}
        onChange={event => {
          setText(event.currentTarget.value)
          if (!edited) drafts.set(chat, event.currentTarget.value)
        }}
        onKeyDown={event => {
          if (event.key === 'Escape' && writing.kind !== 'new') stop()
          if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
          event.preventDefault()
          submit()
        }}
      />
      <Button type="submit" leftSection={<SendIcon />} loading={send.isPending} disabled={text.trim() === ''}>
        {edited ? words.common.save : words.send.action}
      </Button>
      <div className={classes.problem}>
        {isUnanswered ? <Notice tone="bad">{words.send.unanswered}</Notice> : <Problem error={send.error} />}
      </div>
    </form>
  )
}
