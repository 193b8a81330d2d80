import { Button, Group, Stack, Textarea } from '@mantine/core'
import { useEffect, useRef, useState } from 'react'
import { ApiError } from '../../api/client.ts'
import type { Instance, Message, MessageLife } from '../../api/types.ts'
import { changeUnsent, type Unsent, usePlaces, useSend, useUnsent } from '../../api/unsent.ts'
import { CopyCurl } from '../../components/copy/copy-curl.tsx'
import { Notice } from '../../components/feedback/notice.tsx'
import { Problem } from '../../components/feedback/problem.tsx'
import { SendIcon } from '../../components/icons.tsx'
import { RecipientField } from '../../components/recipients/recipient-field.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import { AttachmentField, useAttachment } from './attachment.tsx'
import classes from './send-form.module.css'

const NUMBER = /^[1-9][0-9]{6,14}$/
const GROUP = /^[0-9]+(-[0-9]+)?@g\.us$/
const LID = /^[1-9][0-9]{4,19}@lid$/
const FIRST_RECIPIENT = '5511987654321'
const MAX_TEXT = 65_536

/** An uploaded file by its ID, or the address of a file. */
type Media = string | { url: string }

/** The initial values of the form. */
export interface Draft {
  /** The failed message that is sent again. */
  after?: MessageLife
}

interface SendFormProps {
  instance: Instance
  draft?: Draft
  /** The number is not connected: the text is kept, and not sent. */
  isDisabled?: boolean
  onSent: (messageId: string) => void
}

/** Sends a message by hand to a number or a group. The unsent message outlives the form. */
export function SendForm({ instance, draft = {}, isDisabled = false, onSent }: SendFormProps) {
  const words = useWords()
  const { after } = draft
  const form = useMessage(instance, after, onSent)
  const { to, shownText, attaching, media, extras, unsent, change } = form
  const [isTried, setTried] = useState(false)
  const isPending = unsent.isPending ?? false
  const isUnanswered = unsent.error instanceof ApiError && unsent.error.code === 'unreachable'
  return (
    <form
      onSubmit={event => {
        event.preventDefault()
        setTried(true)
        if (form.isValid && form.isComplete && !isDisabled && !isPending) form.send()
      }}
    >
      <Stack gap="md">
        {after && <p className={classes.again}>{words.tools.againText}</p>}
        {after?.error?.code === 'unconfirmed' && <Notice tone="wait">{words.tools.againUnconfirmed}</Notice>}
        <RecipientField
          instanceId={instance.id}
          value={to}
          onChange={changed => change({ to: changed })}
          error={isTried && !form.isValid && words.send.toWrong}
          readOnly={isPending}
        />
        {instance.kind === 'sandbox' && <Meanings isLocked={isPending} onPick={picked => change({ to: picked })} />}
        <AttachmentField {...attaching}>
          <Textarea
            label={media === undefined ? words.send.text : words.files.caption}
            autosize
            minRows={2}
            maxRows={8}
            maxLength={MAX_TEXT}
            readOnly={isPending}
            value={shownText}
            onChange={event => change({ text: event.currentTarget.value })}
          />
        </AttachmentField>
        {isUnanswered ? <Notice tone="bad">{words.send.unanswered}</Notice> : <Problem error={unsent.error} />}
        {isDisabled && <Notice tone="wait">{words.send.notConnected}</Notice>}
        <Group>
          <Button
            type="submit"
            leftSection={<SendIcon />}
            loading={isPending}
            disabled={!form.isComplete || isDisabled}
          >
            {words.send.action}
          </Button>
          <CopyCurl
            of={
              media === undefined
                ? {
                    method: 'POST',
                    path: '/v1/messages/text',
                    body: { to: form.recipient, text: shownText, ...extras },
                  }
                : {
                    method: 'POST',
                    path: '/v1/messages/media',
                    body: { to: form.recipient, media, ...(shownText && { caption: shownText }), ...extras },
                  }
            }
            what="POST /v1/messages"
          />
        </Group>
      </Stack>
    </form>
  )
}

/** Names the form that sends this message again, or the form for a new one. `SendMarkedAgain` uses the names too. */
export function formOf(after: Pick<Message, 'id'> | undefined): string {
  return after ? `again ${after.id}` : 'new'
}

/** The message of the form, and the call that sends it. */
function useMessage(instance: Instance, after: MessageLife | undefined, onSent: (messageId: string) => void) {
  const words = useWords()
  const place = usePlaces(instance.id)(formOf(after))
  const unsent = useUnsent(place)
  const firstRecipient = instance.kind === 'sandbox' ? FIRST_RECIPIENT : ''
  const { to = after?.to ?? firstRecipient, text = after?.text ?? words.send.defaultText, sentId } = unsent
  const attaching = useAttachment(instance.id, place, after?.media)
  const { attachment } = attaching
  const url = attaching.url?.trim() ?? ''
  const named = url === '' ? undefined : { url }
  const media = attachment.state === 'stored' ? attachment.file.id : named
  /** The suggested text does not become a caption. */
  const shownText = media !== undefined && text === words.send.defaultText ? '' : text
  const recipient = to.includes('@') ? to.trim() : to.replace(/[\s()+.-]/g, '')
  const extras = after === undefined ? {} : extrasOf(after, { to: recipient, text: shownText, media })
  const send = useSend(instance.id, place)

  /** A message that was sent while no form was open is shown only to a person who wants to send it again. */
  const isShown = useRef(after !== undefined)
  /** The form is about to close, and shows its first text again. */
  const isSent = useRef(false)
  useEffect(() => {
    if (sentId !== undefined) {
      changeUnsent(place, { sentId: undefined })
      isSent.current = isShown.current
      if (isShown.current) onSent(sentId)
    }
    isShown.current = true
  }, [sentId, place, onSent])

  return {
    to,
    shownText,
    attaching,
    media,
    recipient,
    extras,
    unsent,
    change: (changed: Unsent) => {
      isSent.current = false
      changeUnsent(place, changed)
    },
    isComplete: attachment.state !== 'uploading' && (media !== undefined || text.trim() !== ''),
    isValid: NUMBER.test(recipient) || GROUP.test(recipient) || LID.test(recipient),
    send: () => {
      if (!isSent.current) send(contentOf(recipient, shownText, media, extras))
    },
  }
}

/** The same content is written in the same way, so that it has the same idempotency key. */
export function contentOf(to: string, text: string, media: Media | undefined, extras: ReturnType<typeof extrasOf>) {
  return { to, ...(text && { text }), ...(media && { media }), ...extras }
}

interface Again {
  to: string
  text: string
  /** The file that is sent. */
  media: Media | undefined
}

/** The extras that a message keeps from the failed one when it is sent again. */
export function extrasOf(failed: Message, { to, text, media }: Again) {
  const { media: before, quote, mentions, preview, metadata } = failed
  const isSameFile = before !== undefined && before.id === media
  const isSameChat = to === failed.to
  return {
    ...(isSameFile && before.as && { as: before.as }),
    ...(isSameFile && before.filename !== null && { filename: before.filename }),
    ...(isSameChat && quote && { quote: quote.messageId }),
    ...(isSameChat && mentions && { mentions }),
    ...(media === undefined && preview && text.includes(preview.url) && { preview }),
    ...(metadata && { metadata }),
  }
}

/** The numbers with a special behaviour (contract §7). */
function Meanings({ isLocked, onPick }: { isLocked: boolean; onPick: (number: string) => void }) {
  const words = useWords()
  const { numbers } = words.send
  const meanings: [string, string][] = [
    ['5511987654321', numbers.any],
    ['15005550005', numbers.answers],
    ['15005550002', numbers.neverRead],
    ['15005550003', numbers.neverDelivered],
    ['15005550001', numbers.notOnWhatsapp],
    ['15005550004', numbers.refused],
    ['120363000000000042@g.us', numbers.group],
  ]
  return (
    <details className={classes.meanings}>
      <summary>{words.send.numbersTitle}</summary>
      <ul>
        {meanings.map(([number, meaning]) => (
          <li key={number}>
            <button type="button" disabled={isLocked} onClick={() => onPick(number)}>
              {number}
            </button>{' '}
            {meaning}
          </li>
        ))}
      </ul>
    </details>
  )
}
