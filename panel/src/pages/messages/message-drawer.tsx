import { Button, Group } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { ApiError } from '../../api/client.ts'
import { endpointsQuery, messageQuery } from '../../api/queries.ts'
import type { MessageLife } from '../../api/types.ts'
import { useMay } from '../../api/use-role.ts'
import { DeliveryBadge, MessageBadge } from '../../components/badges.tsx'
import { CopyIconButton } from '../../components/copy/copy.tsx'
import { CopyCurl } from '../../components/copy/copy-curl.tsx'
import { ReadProblem } from '../../components/feedback/problem.tsx'
import { Waiting } from '../../components/feedback/waiting.tsx'
import { GuideLink } from '../../components/guide-link.tsx'
import { RepeatIcon } from '../../components/icons.tsx'
import { DrawerPage, type Steps } from '../../components/log/drawer-page.tsx'
import { Step, Timeline } from '../../components/log/timeline.tsx'
import { MessageFile } from '../../components/media/file-preview.tsx'
import { Empty, Fact, Facts } from '../../components/panels.tsx'
import { Recipient } from '../../components/recipients/recipient.tsx'
import { duration, Time } from '../../components/time.tsx'
import { useLanguage, useWords } from '../../i18n/i18n.tsx'
import classes from './message-drawer.module.css'

interface MessageDrawerProps {
  instanceId: string
  /** Undefined if closed. */
  messageId: string | undefined
  steps: Steps
  onClose: () => void
  /** Undefined if the signed-in person may not send. */
  onSendAgain: ((message: MessageLife) => void) | undefined
}

export function MessageDrawer({ instanceId, messageId, steps, onClose, onSendAgain }: MessageDrawerProps) {
  const words = useWords()
  return (
    <DrawerPage opened={messageId !== undefined} onClose={onClose} title={words.message.title} steps={steps}>
      {messageId !== undefined && (
        <OneMessage instanceId={instanceId} messageId={messageId} onSendAgain={onSendAgain} />
      )}
    </DrawerPage>
  )
}

type OneMessageProps = Pick<MessageDrawerProps, 'instanceId' | 'onSendAgain'> & { messageId: string }

function OneMessage({ instanceId, messageId, onSendAgain }: OneMessageProps) {
  const words = useWords()
  const { data: message, error, refetch } = useQuery(messageQuery(instanceId, messageId))
  if (error instanceof ApiError && error.code === 'message_not_found') {
    return <Empty title={words.message.notFound}>{messageId}</Empty>
  }
  const problem = <ReadProblem data={message} error={error} refetch={refetch} />
  if (!message) return error ? problem : <Waiting />
  return (
    <div className={classes.page}>
      {problem}
      {message.media && <MessageFile instanceId={instanceId} mediaId={message.media.id} />}
      {(!message.media || message.text) && (
        <blockquote className={classes.text} dir="auto">
          {message.text}
        </blockquote>
      )}
      <Facts>
        <Fact name={words.messages.state}>
          <MessageBadge state={message.status} />
        </Fact>
        <Fact name={words.message.to}>
          <Recipient to={message.to} />
        </Fact>
        <Fact name={words.message.id}>
          <span className={classes.id}>
            <code>{message.id}</code>
            <CopyIconButton value={message.id} what={words.message.id} />
          </span>
        </Fact>
      </Facts>
      <Group gap="xs">
        {message.error && onSendAgain && (
          <Button size="compact-sm" leftSection={<RepeatIcon size={15} />} onClick={() => onSendAgain(message)}>
            {words.tools.again}
          </Button>
        )}
        <CopyCurl of={{ method: 'GET', path: `/v1/messages/${message.id}` }} what={message.id} />
      </Group>
      <h2 className={classes.heading}>{words.message.life}</h2>
      <Life message={message} instanceId={instanceId} />
      {message.events.length > 0 && message.events.every(({ delivery }) => delivery === null) && (
        <SetWebhook instanceId={instanceId} />
      )}
    </div>
  )
}

/** A link for those who may set a URL, while there is none. */
function SetWebhook({ instanceId }: { instanceId: string }) {
  const words = useWords()
  const isOperator = useMay('operator')
  const { data: endpoints } = useQuery(endpointsQuery(instanceId))
  if (!isOperator || endpoints?.length !== 0) return null
  return (
    <Link to="/instances/$id/webhook" params={{ id: instanceId }}>
      {words.message.setWebhook}
    </Link>
  )
}

function Life({ message, instanceId }: { message: MessageLife; instanceId: string }) {
  const words = useWords()
  const { status, createdAt, sentAt, deliveredAt, readAt, failedAt, error } = message
  // The code is part of the message text; there is no field for it.
  const whatsappCode = error?.code === 'rejected_by_whatsapp' ? /[0-9]+/.exec(error.message)?.[0] : undefined
  const stepEvent = (kind: string): ReactNode => (
    <StepEvent message={message} kind={`message.${kind}`} instanceId={instanceId} />
  )
  return (
    <Timeline>
      <Step title={words.message.accepted} at={<Time at={createdAt} />} tone="quiet">
        {words.message.acceptedText}
      </Step>
      {sentAt && (
        <Step title={words.message.sent} at={<Reached at={sentAt} after={createdAt} />} tone="calm">
          {words.message.sentText}
          {stepEvent('sent')}
        </Step>
      )}
      {deliveredAt && (
        <Step title={words.message.delivered} at={<Reached at={deliveredAt} after={sentAt ?? createdAt} />} tone="calm">
          {words.message.deliveredText}
          {stepEvent('delivered')}
        </Step>
      )}
      {readAt && (
        <Step title={words.message.read} at={<Reached at={readAt} after={deliveredAt ?? createdAt} />} tone="good">
          {words.message.readText}
          {stepEvent('read')}
        </Step>
      )}
      {failedAt && error && (
        <Step title={words.message.failed} at={<Reached at={failedAt} after={createdAt} />} tone="bad">
          {words.failures[error.code]}
          {whatsappCode && <div>{words.message.whatsappCode(whatsappCode)}</div>}
          <div>{words.tools.failureSteps[error.code]}</div>
          <div className={classes.code}>
            {words.tools.code} <code>{error.code}</code> · <GuideLink to="errors" />
          </div>
          {stepEvent('failed')}
        </Step>
      )}
      {status === 'queued' && <Step title={words.message.waitingSent} open />}
      {status === 'sent' && <Step title={words.message.waitingDelivered} open />}
      {status === 'delivered' && <Step title={words.message.waitingRead} open />}
    </Timeline>
  )
}

/** When a step was reached, and the time since the previous one. */
function Reached({ at, after }: { at: string; after: string }) {
  const words = useWords()
  const { language } = useLanguage()
  return (
    <>
      {words.message.after(duration(Date.parse(at) - Date.parse(after), language))} · <Time at={at} />
    </>
  )
}

/** The event that reported this step, and the state of its delivery. */
function StepEvent({ message, kind, instanceId }: { message: MessageLife; kind: string; instanceId: string }) {
  const words = useWords()
  const event = message.events.find(entry => entry.event === kind)
  if (!event) return null
  const { delivery } = event
  return (
    <div className={classes.stepEvent}>
      <Link to="/instances/$id/events" params={{ id: instanceId }} search={{ open: event.id }}>
        <span className="visually-hidden">{words.message.openEvent} </span>
        <code>{kind}</code>
      </Link>
      <span className={classes.outcome}>
        {words.message.webhook}{' '}
        {delivery ? (
          <>
            <DeliveryBadge state={delivery.state} attempts={delivery.attemptCount} />
            {delivery.attemptCount > 1 && words.message.attempts(delivery.attemptCount)}
          </>
        ) : (
          words.message.noWebhook
        )}
      </span>
    </div>
  )
}
