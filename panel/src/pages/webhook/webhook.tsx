import { Button, Group, Stack, TextInput } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { callData } from '../../api/client.ts'
import { useAwaySince } from '../../api/live.ts'
import { webhookQuery } from '../../api/queries.ts'
import type { Webhook, WebhookTest } from '../../api/types.ts'
import { Badge } from '../../components/badges.tsx'
import { CodeBlock, CopyField } from '../../components/copy.tsx'
import { Confirm } from '../../components/feedback/confirm.tsx'
import { Problem } from '../../components/feedback/problem.tsx'
import { useToast } from '../../components/feedback/toasts.tsx'
import { Waiting } from '../../components/feedback/waiting.tsx'
import { EyeIcon } from '../../components/icons.tsx'
import { Card, PageHead } from '../../components/panels.tsx'
import { duration, Time } from '../../components/time.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import { useInstance } from '../instance/instance.tsx'
import { Snippets } from './snippets.tsx'
import classes from './webhook.module.css'

export function WebhookPage() {
  const words = useWords()
  const instance = useInstance()
  const { data: webhook, error, refetch } = useQuery(webhookQuery(instance.id))
  if (error && !webhook) return <Problem error={error} onRetry={() => void refetch()} />
  if (!webhook) return <Waiting />
  return (
    <>
      <div className={classes.headOnly}>
        <PageHead level={2} title={words.webhook.title}>
          {words.webhook.lead}
        </PageHead>
      </div>
      <UrlCard key={webhook.url} webhook={webhook} />
      {webhook.url !== null && <TestCard webhook={webhook} />}
      {webhook.secret !== null && <SecretCard webhook={webhook} secret={webhook.secret} />}
      <Card title={words.webhook.verify} hint={words.webhook.verifyHint}>
        <Snippets />
      </Card>
    </>
  )
}

/** A quick check. The service validates the URL. */
function isUrl(text: string): boolean {
  const url = /^https?:\/\//i.test(text) ? URL.parse(text) : null
  return url !== null && url.hostname !== '' && url.username === ''
}

function UrlCard({ webhook }: { webhook: Webhook }) {
  const words = useWords()
  const toast = useToast()
  const client = useQueryClient()
  const [url, setUrl] = useState(webhook.url ?? '')
  const [isLeft, setLeft] = useState(false)
  const [isRemoving, setRemoving] = useState(false)
  const trimmed = url.trim()
  const path = `/instances/${webhook.instanceId}/webhook`
  const keep = (changed: Webhook) => client.setQueryData(webhookQuery(webhook.instanceId).queryKey, changed)
  const save = useMutation({
    mutationFn: () => callData<Webhook>(path, { method: 'PUT', body: { url: trimmed } }),
    onSuccess: changed => {
      keep(changed)
      toast(words.webhook.saved)
    },
  })
  const isWrong = trimmed !== '' && !isUrl(trimmed)
  return (
    <Card>
      <form
        onSubmit={event => {
          event.preventDefault()
          setLeft(true)
          if (trimmed && !isWrong) save.mutate()
        }}
      >
        <Stack gap="md">
          <TextInput
            label={words.webhook.url}
            description={words.webhook.urlHint}
            placeholder="https://example.com/webhooks/pombal"
            inputMode="url"
            value={url}
            maxLength={2048}
            spellCheck={false}
            autoComplete="off"
            onChange={event => setUrl(event.currentTarget.value)}
            onBlur={() => setLeft(true)}
            error={isLeft && isWrong && words.webhook.urlWrong}
          />
          <Problem error={save.error} />
          <Group>
            <Button type="submit" loading={save.isPending} disabled={!trimmed || isWrong || trimmed === webhook.url}>
              {words.webhook.save}
            </Button>
            {webhook.url !== null && (
              <Button variant="subtle" color="red" onClick={() => setRemoving(true)}>
                {words.webhook.remove}
              </Button>
            )}
          </Group>
          {webhook.url !== null && <p className={classes.note}>{words.webhook.boundNote}</p>}
        </Stack>
      </form>
      <Confirm
        opened={isRemoving}
        onClose={() => setRemoving(false)}
        title={words.webhook.removeTitle}
        action={words.webhook.remove}
        danger
        onConfirm={async () => {
          keep(await callData<Webhook>(path, { method: 'PUT', body: { url: null } }))
          toast(words.webhook.removed)
        }}
      >
        {words.webhook.removeText}
      </Confirm>
    </Card>
  )
}

function TestCard({ webhook }: { webhook: Webhook }) {
  const words = useWords()
  const test = useMutation({
    mutationFn: () => callData<WebhookTest>(`/instances/${webhook.instanceId}/webhook/test`, { method: 'POST' }),
  })
  return (
    <Card
      title={words.webhook.test}
      hint={words.webhook.testHint}
      action={
        <Button variant="light" onClick={() => test.mutate()} loading={test.isPending}>
          {words.webhook.test}
        </Button>
      }
    >
      <div role="status">
        {test.isPending && <Waiting text={words.webhook.testing} />}
        {test.data && !test.isPending && <TestAnswer answer={test.data} />}
      </div>
      <Problem error={test.error} />
    </Card>
  )
}

function TestAnswer({ answer }: { answer: WebhookTest }) {
  const words = useWords()
  const { status, error, durationMs, responseExcerpt, headers, body, url } = answer
  const isAway = useAwaySince() !== null
  const isSuccess = status !== null && status >= 200 && status < 300
  const explained = error && (words.attemptErrors as Record<string, string>)[error]
  const posted = [`POST ${url}`, ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`), '', body]
  return (
    <div className={classes.answer} data-good={isAway ? undefined : isSuccess}>
      <div className={classes.answerHead}>
        <Badge tone={isSuccess ? 'good' : 'bad'}>
          {status === null ? words.event.noAnswer : words.event.answered(status)}
        </Badge>
        {error && <code>{error}</code>}
        <span>{duration(durationMs)}</span>
      </div>
      <strong>{isSuccess ? words.webhook.testOk : words.webhook.testFailed}</strong>
      {!isSuccess && <span>{explained ?? (status !== null && words.webhook.testStatus(status))}</span>}
      {responseExcerpt && (
        <details>
          <summary>{words.event.response}</summary>
          <CodeBlock code={responseExcerpt} label={words.event.response} />
        </details>
      )}
      <details>
        <summary>{words.webhook.testPosted}</summary>
        <CodeBlock code={posted.join('\n')} label={words.webhook.testPosted} />
      </details>
    </div>
  )
}

function SecretCard({ webhook, secret }: { webhook: Webhook; secret: string }) {
  const words = useWords()
  const toast = useToast()
  const client = useQueryClient()
  const [isShown, setShown] = useState(false)
  const [isRotating, setRotating] = useState(false)
  return (
    <Card
      title={words.webhook.secret}
      hint={words.webhook.secretHint}
      action={
        <Button variant="default" onClick={() => setRotating(true)}>
          {words.webhook.rotate}
        </Button>
      }
    >
      <div className={classes.secret}>
        <CopyField label={words.webhook.secret} value={secret} hidden={!isShown} />
        <Button variant="subtle" leftSection={<EyeIcon />} onClick={() => setShown(!isShown)} aria-expanded={isShown}>
          {isShown ? words.webhook.hide : words.webhook.reveal}
        </Button>
      </div>
      {webhook.previousSecretUntil && (
        <p className={classes.overlap} role="status">
          {words.webhook.overlap} <Time at={webhook.previousSecretUntil} />. {words.webhook.overlapText}
        </p>
      )}
      <Confirm
        opened={isRotating}
        onClose={() => setRotating(false)}
        title={words.webhook.rotateTitle}
        action={words.webhook.rotate}
        onConfirm={async () => {
          const changed = await callData<Webhook>(`/instances/${webhook.instanceId}/webhook/secret`, { method: 'POST' })
          client.setQueryData(webhookQuery(webhook.instanceId).queryKey, changed)
          setShown(true)
          toast(words.webhook.rotated)
        }}
      >
        <p>{words.webhook.rotateText}</p>
        <ul className={classes.list}>
          <li>{words.webhook.rotateStandard}</li>
          <li>{words.webhook.rotateService}</li>
        </ul>
      </Confirm>
    </Card>
  )
}
