import { Button } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { call, callData } from '../../api/client.ts'
import { Confirm } from '../../components/feedback/confirm.tsx'
import { Problem } from '../../components/feedback/problem.tsx'
import { useToast } from '../../components/feedback/toasts.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import classes from './webhook.module.css'

interface EndpointActionsProps {
  /** The path of the endpoint in the management API. */
  path: string
  endpoint: { url: string; active: boolean }
  /** The endpoint or its state has changed. */
  refresh: () => Promise<unknown>
  onSecret: (secret: string) => void
}

/** Pauses, resumes and removes an endpoint, and replaces its secret. */
export function EndpointActions({ path, endpoint: { url, active }, refresh, onSecret }: EndpointActionsProps) {
  const words = useWords()
  const toast = useToast()
  const [asking, setAsking] = useState<'rotate' | 'remove' | null>(null)
  const pause = useMutation({
    mutationFn: () => callData<{ active: boolean }>(path, { method: 'PATCH', body: { active: !active } }),
    onSuccess: async changed => {
      toast(changed.active ? words.endpoints.resumedNow : words.endpoints.pausedNow)
      await refresh()
    },
  })
  const close = () => setAsking(null)
  return (
    <>
      <Action
        label={active ? words.endpoints.pauseOf(url) : words.endpoints.resumeOf(url)}
        onClick={() => pause.mutate()}
        isBusy={pause.isPending}
      >
        {active ? words.endpoints.pause : words.endpoints.resume}
      </Action>
      <Action label={words.endpoints.rotateOf(url)} onClick={() => setAsking('rotate')}>
        {words.webhook.rotate}
      </Action>
      <Action label={words.endpoints.removeOf(url)} onClick={() => setAsking('remove')}>
        {words.endpoints.remove}
      </Action>
      <Problem error={pause.error} />
      <Confirm
        opened={asking === 'rotate'}
        onClose={close}
        title={words.webhook.rotateTitle}
        action={words.webhook.rotate}
        onConfirm={async () => {
          const { secret } = await callData<{ secret: string }>(`${path}/secret`, { method: 'POST' })
          onSecret(secret)
          toast(words.webhook.rotated)
          void refresh()
        }}
      >
        <p>
          <code>{url}</code>
        </p>
        <p>{words.webhook.rotateText}</p>
        <ul className={classes.list}>
          <li>{words.webhook.rotateStandard}</li>
          <li>{words.webhook.rotateService}</li>
        </ul>
      </Confirm>
      <Confirm
        opened={asking === 'remove'}
        onClose={close}
        title={words.endpoints.removeTitle}
        action={words.endpoints.remove}
        danger
        onConfirm={async () => {
          await call(path, { method: 'DELETE' })
          toast(words.endpoints.removed)
          void refresh()
        }}
      >
        <p>
          <code>{url}</code>
        </p>
        {words.endpoints.removeText}
      </Confirm>
    </>
  )
}

interface ActionProps {
  label: string
  onClick: () => void
  isBusy?: boolean
  children: ReactNode
}

/** A small button below an endpoint. */
export function Action({ label, onClick, isBusy = false, children }: ActionProps) {
  return (
    <Button size="compact-sm" variant="default" aria-label={label} onClick={onClick} loading={isBusy}>
      {children}
    </Button>
  )
}
