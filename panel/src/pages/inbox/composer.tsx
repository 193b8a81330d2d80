import { Button, Textarea } from '@mantine/core'
import { useEffect, useRef } from 'react'
import { ApiError, call } from '../../api/client.ts'
import type { ChatLine } from '../../api/types.ts'
import { changeUnsent, dropSent, dropUnsent, usePlaces, useSend, useUnsent } from '../../api/unsent.ts'
import { useAction } from '../../api/use-action.ts'
import { Notice } from '../../components/feedback/notice.tsx'
import { Problem, problemText } from '../../components/feedback/problem.tsx'
import { useToast } from '../../components/feedback/toasts.tsx'
import { SendIcon } from '../../components/icons.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import classes from './inbox.module.css'
import { authorOf, previewOf } from './lines.ts'

const MAX_TEXT = 65_536
/** The `keyCode` of a key that an input method handles. In Safari, Enter that ends a composition has only this mark. */
const COMPOSING = 229

/** A reply to a message, or an edit of it. */
export type Writing = { kind: 'reply' | 'edit'; line: ChatLine }

interface ComposerProps {
  instanceId: string
  chat: string
  name: string
  /** The place of the unsent message (`usePlaces`). */
  place: string
  /** The message that is edited. Null while the person writes a new message or a reply. */
  edited: ChatLine | null
  /** The edit was sent or given up. */
  onEdited: () => void
}

/** Writes a message to the chat, replies to one, or edits one. Each edited message needs a `key` of its own. */
export function Composer({ instanceId, chat, name, place, edited, onEdited }: ComposerProps) {
  const words = useWords()
  const toast = useToast()
  const unsent = useUnsent(place)
  const editPlace = usePlaces(instanceId)(`edit ${edited?.id}`)
  const editedText = useUnsent(editPlace).text ?? edited?.text ?? ''
  const field = useRef<HTMLTextAreaElement>(null)
  const quote = unsent.quote ?? null
  const about = edited ?? quote
  // biome-ignore lint/correctness/useExhaustiveDependencies: the field takes the focus when its purpose changes
  useEffect(() => field.current?.focus(), [edited, quote])

  const send = useSend(instanceId, place)
  const edit = useAction({
    mutationFn: (text: string) =>
      call(`/instances/${instanceId}/messages/${edited?.id}`, { method: 'PATCH', body: { text } }),
    onSuccess: (_, sentText) => {
      if (dropSent(editPlace, sentText)) onEdited()
    },
    onError: failure => {
      const code = failure instanceof ApiError ? failure.code : null
      // The composer shows its failure itself, and the sign-in page the end of the session.
      if (field.current || code === 'invalid_admin_key') return
      // Without an answer, the edit may have been made.
      const failed = code === 'unreachable' ? '' : `${words.inbox.failedCommands.edit} `
      toast(failed + problemText(failure, words), 'bad')
    },
  })
  const text = edited ? editedText : (unsent.text ?? '')
  const isPending = edited ? edit.isPending : (unsent.isPending ?? false)
  const error = edited ? edit.error : unsent.error
  const isUnanswered = !edited && error instanceof ApiError && error.code === 'unreachable'
  const stop = () => {
    if (isPending) return
    if (edited) {
      dropUnsent(editPlace)
      onEdited()
    } else changeUnsent(place, { quote: null, error: null })
  }
  const submit = () => {
    if (text.trim() === '' || isPending) return
    if (edited) edit.mutate(text)
    else {
      // If the previous call got no response, a retry is safe only with identical content. So keep the `to` that was
      // sent, even if the chat's number has become known since.
      const to = (isUnanswered && unsent.to) || chat
      changeUnsent(place, { to })
      send({ to, text, ...(quote && { quote: quote.id }) })
    }
  }
  return (
    <form
      className={classes.composer}
      onSubmit={event => {
        event.preventDefault()
        submit()
      }}
    >
      {about && <About line={about} isEdited={edited !== null} isPending={isPending} onStop={stop} />}
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
        readOnly={isPending}
        value={text}
        onChange={event => {
          if (edited) changeUnsent(editPlace, { text: event.currentTarget.value })
          else changeUnsent(place, { text: event.currentTarget.value })
        }}
        onKeyDown={event => {
          if (event.nativeEvent.isComposing || event.keyCode === COMPOSING) return
          if (event.key === 'Escape' && about) stop()
          if (event.key !== 'Enter' || event.shiftKey) return
          event.preventDefault()
          submit()
        }}
      />
      <Button type="submit" leftSection={<SendIcon />} loading={isPending} disabled={text.trim() === ''}>
        {edited ? words.common.save : words.send.action}
      </Button>
      <div className={classes.problem}>
        {isUnanswered ? <Notice tone="bad">{words.send.unanswered}</Notice> : <Problem error={error} />}
      </div>
    </form>
  )
}

interface AboutProps {
  line: ChatLine
  isEdited: boolean
  isPending: boolean
  onStop: () => void
}

/** The message that is replied to or edited. */
function About({ line, isEdited, isPending, onStop }: AboutProps) {
  const words = useWords()
  return (
    <div className={classes.about}>
      <div className={classes.aboutText}>
        <strong dir="auto">
          {isEdited ? words.inbox.editingTitle : words.inbox.answering(authorOf(line) ?? words.inbox.you)}
        </strong>
        <span dir="auto">{previewOf(line, words)}</span>
      </div>
      <Button variant="subtle" size="compact-sm" disabled={isPending} onClick={onStop}>
        {words.inbox.stop}
      </Button>
    </div>
  )
}
