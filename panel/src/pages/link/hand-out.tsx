import { Button, Group, Select, Stack, TextInput } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { call, callData } from '../../api/client.ts'
import { linksQuery } from '../../api/queries.ts'
import { serverNow } from '../../api/server-clock.ts'
import type { CreatedLink, HandedOutLink } from '../../api/types.ts'
import { useAction } from '../../api/use-action.ts'
import { CopyField } from '../../components/copy/copy.tsx'
import { Confirm } from '../../components/feedback/confirm.tsx'
import { Dialog } from '../../components/feedback/dialog.tsx'
import { Problem, ReadProblem } from '../../components/feedback/problem.tsx'
import { useToast } from '../../components/feedback/toasts.tsx'
import { Time } from '../../components/time.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import classes from './hand-out.module.css'

const LIFETIMES = ['60', '240', '1440'] as const

/** Creates and lists links that let somebody else link the number. Shown to operators and owners. */
export function HandOut({ instanceId }: { instanceId: string }) {
  const words = useWords()
  const [isCreating, setCreating] = useState(false)
  const { data, error, refetch } = useQuery(linksQuery(instanceId))
  return (
    <div className={classes.handout}>
      <Group gap="xs">
        <span>{words.links.offer}</span>
        <Button variant="default" size="compact-sm" onClick={() => setCreating(true)}>
          {words.links.create}
        </Button>
      </Group>
      {isCreating && <CreateLink instanceId={instanceId} onClose={() => setCreating(false)} />}
      <ReadProblem data={data} error={error} refetch={refetch} />
      {data && data.length > 0 && (
        <ul aria-label={words.links.list}>
          {data.map(link => (
            <HandedOut key={link.id} instanceId={instanceId} link={link} />
          ))}
        </ul>
      )}
    </div>
  )
}

function HandedOut({ instanceId, link }: { instanceId: string; link: HandedOutLink }) {
  const words = useWords()
  const toast = useToast()
  const client = useQueryClient()
  const [isAsking, setAsking] = useState(false)
  const { id, title, expiresAt, openedAt, usedAt } = link
  const name = title ?? words.links.unnamed
  const isExpired = Date.parse(expiresAt) <= serverNow()
  return (
    <li>
      <div>
        <strong>{name}</strong>{' '}
        {usedAt ? (
          words.links.used
        ) : (
          <>
            {isExpired ? words.links.ended : words.links.ends} <Time at={expiresAt} seconds={false} />,{' '}
            {openedAt ? words.links.opened : words.links.notOpened}
          </>
        )}
      </div>
      {!usedAt && !isExpired && (
        <Button
          variant="default"
          size="compact-sm"
          onClick={() => setAsking(true)}
          aria-label={words.links.revokeLabel(name)}
        >
          {words.links.revoke}
        </Button>
      )}
      <Confirm
        opened={isAsking}
        onClose={() => setAsking(false)}
        title={words.links.revokeLabel(name)}
        action={words.links.revoke}
        danger
        onConfirm={async () => {
          await call(`/instances/${instanceId}/links/${id}`, { method: 'DELETE' })
          void client.invalidateQueries(linksQuery(instanceId))
          toast(words.links.revoked)
        }}
      >
        <p>{words.links.revokeText}</p>
      </Confirm>
    </li>
  )
}

/** Shows the link once. Only this dialog's memory holds it. */
function CreateLink({ instanceId, onClose }: { instanceId: string; onClose: () => void }) {
  const words = useWords()
  const client = useQueryClient()
  const [title, setTitle] = useState('')
  const [back, setBack] = useState('')
  const [minutes, setMinutes] = useState<(typeof LIFETIMES)[number]>('60')
  const create = useAction(
    {
      mutationFn: () =>
        callData<CreatedLink>(`/instances/${instanceId}/links`, {
          method: 'POST',
          body: { expiresInMinutes: Number(minutes), title: title.trim() || null, returnUrl: back.trim() || null },
        }),
      onSuccess: () => void client.invalidateQueries(linksQuery(instanceId)),
    },
    { isFinal: true },
  )
  const url = create.data && new URL(create.data.url, window.location.origin).href
  return (
    <Dialog
      opened
      onClose={onClose}
      title={words.links.title}
      isBusy={create.isPending}
      // A click beside the dialog would lose the link.
      closeOnClickOutside={!url}
    >
      {url ? (
        <Stack>
          <p>{words.links.made}</p>
          <CopyField label={words.links.link} value={url} />
          <Group justify="flex-end">
            <Button onClick={onClose}>{words.token.done}</Button>
          </Group>
        </Stack>
      ) : (
        <form
          onSubmit={event => {
            event.preventDefault()
            create.mutate()
          }}
        >
          <Stack>
            <p>{words.links.text}</p>
            <TextInput
              label={words.links.heading}
              description={words.links.headingHint}
              value={title}
              maxLength={100}
              onChange={event => setTitle(event.currentTarget.value)}
            />
            <Select
              label={words.links.lasts}
              value={minutes}
              allowDeselect={false}
              data={LIFETIMES.map(value => ({ value, label: words.links.minutes[value] }))}
              onChange={value => setMinutes(LIFETIMES.find(known => known === value) ?? '60')}
            />
            <TextInput
              label={words.links.back}
              description={words.links.backHint}
              value={back}
              onChange={event => setBack(event.currentTarget.value)}
            />
            <Problem error={create.error} />
            <Group justify="flex-end">
              <Button variant="default" onClick={onClose} disabled={create.isPending}>
                {words.common.cancel}
              </Button>
              <Button type="submit" loading={create.isPending}>
                {words.people.createLink}
              </Button>
            </Group>
          </Stack>
        </form>
      )}
    </Dialog>
  )
}
