import { Button, Group, Stack, Textarea } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useRef, useState } from 'react'
import { ApiError, callData } from '../../api/client.ts'
import type { Instance, Message, MessageLife } from '../../api/types.ts'
import { CopyCurl } from '../../components/copy/copy-curl.tsx'
import { Notice } from '../../components/feedback/notice.tsx'
import { Problem } from '../../components/feedback/problem.tsx'
import { SendIcon } from '../../components/icons.tsx'
import { RecipientField } from '../../components/recipients/recipient-field.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import { randomId } from '../../text/random-id.ts'
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
  onSent: (messageId: string) => void
}

/** Sends a message by hand to a number or a group. */
export function SendForm({ instance, draft = {}, onSent }: SendFormProps) {
  const words = useWords()
  const isSandbox = instance.kind === 'sandbox'
  const { after } = draft
  const [to, setTo] = useState(after?.to ?? (isSandbox ? FIRST_RECIPIENT : ''))
  const [text, setText] = useState(after?.text ?? words.send.defaultText)
  const [isTried, setTried] = useState(false)
  const attaching = useAttachment(instance.id, after?.media)
  const { attachment } = attaching
  const url = attaching.url?.trim() ?? ''
  const named = url === '' ? undefined : { url }
  const media = attachment.state === 'stored' ? attachment.file.id : named
  /** The suggested text does not become a caption. */
  const shownText = media !== undefined && text === words.send.defaultText ? '' : text
  const isComplete = attachment.state !== 'uploading' && (media !== undefined || text !== '')
  const recipient = to.includes('@') ? to.trim() : to.replace(/[\s()+.-]/g, '')
  const extras = after === undefined ? {} : extrasOf(after, { to: recipient, text: shownText, media })
  const isValid = NUMBER.test(recipient) || GROUP.test(recipient) || LID.test(recipient)
  /** One key per message: a repeated click or a lost answer sends nothing twice. */
  const key = useRef({ for: '', value: '' })

  const send = useMutation({
    mutationFn: () => {
      const message = JSON.stringify([recipient, shownText, media])
      if (key.current.for !== message) key.current = { for: message, value: randomId() }
      return callData<{ id: string }>(`/instances/${instance.id}/messages`, {
        method: 'POST',
        body: {
          to: recipient,
          ...(shownText && { text: shownText }),
          media,
          ...extras,
          idempotencyKey: key.current.value,
        },
      })
    },
    onSuccess: ({ id }) => {
      key.current = { for: '', value: '' }
      attaching.detach()
      onSent(id)
    },
  })

  const isUnanswered = send.error instanceof ApiError && send.error.code === 'unreachable'

  return (
    <form
      onSubmit={event => {
        event.preventDefault()
        setTried(true)
        if (isValid && isComplete) send.mutate()
      }}
    >
      <Stack gap="md">
        {after && <p className={classes.again}>{words.tools.againText}</p>}
        {after?.error?.code === 'unconfirmed' && <Notice tone="wait">{words.tools.againUnconfirmed}</Notice>}
        <RecipientField
          instanceId={instance.id}
          value={to}
          onChange={setTo}
          error={isTried && !isValid && words.send.toWrong}
        />
        {isSandbox && <Meanings onPick={setTo} />}
        <AttachmentField {...attaching}>
          <Textarea
            label={media === undefined ? words.send.text : words.files.caption}
            autosize
            minRows={2}
            maxRows={8}
            maxLength={MAX_TEXT}
            value={shownText}
            onChange={event => setText(event.currentTarget.value)}
          />
        </AttachmentField>
        {isUnanswered ? <Notice tone="bad">{words.send.unanswered}</Notice> : <Problem error={send.error} />}
        <Group>
          <Button type="submit" leftSection={<SendIcon />} loading={send.isPending} disabled={!isComplete}>
            {words.send.action}
          </Button>
          <CopyCurl
            of={
              media === undefined
                ? { method: 'POST', path: '/v1/messages/text', body: { to: recipient, text, ...extras } }
                : {
                    method: 'POST',
                    path: '/v1/messages/media',
                    body: { to: recipient, media, ...(shownText && { caption: shownText }), ...extras },
                  }
            }
            what="POST /v1/messages"
          />
        </Group>
      </Stack>
    </form>
  )
}

interface Again {
  to: string
  text: string
  /** The file that is sent. */
  media: Media | undefined
}

/** What a message that is sent again keeps of the failed one. */
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
function Meanings({ onPick }: { onPick: (number: string) => void }) {
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
            <button type="button" onClick={() => onPick(number)}>
              {number}
            </button>{' '}
            {meaning}
          </li>
        ))}
      </ul>
    </details>
  )
}
