import { Button, Switch } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { callData } from '../../api/client.ts'
import { conversationsQuery, phoneQuery } from '../../api/queries.ts'
import type { Conversation, SandboxPhone } from '../../api/types.ts'
import { useMay } from '../../api/use-role.ts'
import { Problem, ReadProblem } from '../../components/feedback/problem.tsx'
import { Waiting } from '../../components/feedback/waiting.tsx'
import { PlusIcon } from '../../components/icons.tsx'
import { Empty, PageHead } from '../../components/panels.tsx'
import { Time } from '../../components/time.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import { useInstance } from '../instance/instance.tsx'
import { conversationName } from './conversation-name.ts'
import { Handset } from './handset.tsx'
import classes from './phone.module.css'
import { WriteModal } from './write.tsx'

/** The simulated phones of a sandbox instance. Shows the messages to its contacts, and lets people write as a contact. */
export function Phone() {
  const words = useWords()
  const instance = useInstance()
  const navigate = useNavigate({ from: '/instances/$id/phone' })
  const { with: chosen } = useSearch({ from: '/inside/instances/$id/phone' })
  const [isWriting, setWriting] = useState(false)
  const mayWrite = useMay('operator')
  const {
    data: conversations,
    error,
    refetch,
  } = useQuery({
    ...conversationsQuery(instance.id),
    enabled: instance.kind === 'sandbox',
  })
  if (instance.kind !== 'sandbox') return <Empty title={words.phone.notSandbox} />
  const problem = <ReadProblem data={conversations} error={error} refetch={refetch} />
  if (!conversations) return error ? problem : <Waiting />
  const shown =
    conversations.find(conversation => conversation.with === chosen) ?? (chosen ? undefined : conversations[0])
  const choose = (conversation: string | undefined) =>
    void navigate({ search: { with: conversation }, replace: true, resetScroll: false })
  return (
    <>
      <div>
        <PageHead
          level={2}
          title={words.phone.title}
          action={
            mayWrite && (
              <Button variant="light" leftSection={<PlusIcon />} onClick={() => setWriting(true)}>
                {words.phone.writeAs}
              </Button>
            )
          }
        >
          {words.phone.lead}
        </PageHead>
        <Power instanceId={instance.id} />
        {problem}
        {conversations.length === 0 ? (
          <Empty
            title={words.phone.emptyTitle}
            action={
              <Button renderRoot={props => <Link to="/instances/$id" params={{ id: instance.id }} {...props} />}>
                {words.send.title}
              </Button>
            }
          >
            {words.phone.emptyText}
          </Empty>
        ) : (
          <div className={classes.desk} data-chosen={Boolean(chosen)}>
            <nav className={classes.list} aria-label={words.phone.conversations}>
              {conversations.map(conversation => (
                <Link
                  key={conversation.with}
                  to="/instances/$id/phone"
                  params={{ id: instance.id }}
                  search={{ with: conversation.with }}
                  className={classes.entry}
                  data-shown={conversation === shown}
                  replace
                  resetScroll={false}
                >
                  <span className={classes.avatar} aria-hidden>
                    {conversation.name ? [...conversation.name][0] : conversation.with.replace('@g.us', '').slice(-2)}
                  </span>
                  <span className={classes.entryText}>
                    <strong dir="auto">{conversationName(conversation, words)}</strong>
                    <span dir="auto">{lastText(conversation)}</span>
                  </span>
                  <LastTime conversation={conversation} />
                </Link>
              ))}
            </nav>
            {shown && (
              <Handset
                key={shown.with}
                instanceId={instance.id}
                conversation={shown}
                // Without a choice, the latest conversation is shown, and a message elsewhere would replace it while a person types.
                onWriting={() => chosen === undefined && choose(shown.with)}
                onBack={() => choose(undefined)}
              />
            )}
          </div>
        )}
      </div>
      <WriteModal
        instanceId={instance.id}
        opened={isWriting}
        onClose={() => setWriting(false)}
        onWritten={conversation => {
          setWriting(false)
          choose(conversation)
        }}
      />
    </>
  )
}

function lastText({ lines }: Conversation): string | undefined {
  const last = lines.at(-1)
  return last && (last.mediaId === null ? last.text : `📎 ${last.text}`)
}

function LastTime({ conversation }: { conversation: Conversation }) {
  const last = conversation.lines.at(-1)
  return last ? (
    <span className={classes.entryTime}>
      <Time at={last.at} seconds={false} />
    </span>
  ) : null
}

function Power({ instanceId }: { instanceId: string }) {
  const words = useWords()
  const client = useQueryClient()
  const { data: phone, error, refetch } = useQuery(phoneQuery(instanceId))
  const maySwitch = useMay('operator')
  const change = useMutation({
    mutationFn: (on: boolean) =>
      callData<SandboxPhone>(`/instances/${instanceId}/sandbox/phone`, { method: 'PUT', body: { on } }),
    onSuccess: changed => client.setQueryData(phoneQuery(instanceId).queryKey, changed),
  })
  const problem = <ReadProblem data={phone} error={error} refetch={refetch} />
  if (!phone) return problem
  return (
    <div className={classes.power} data-on={phone.on}>
      <Switch
        checked={phone.on}
        onChange={event => change.mutate(event.currentTarget.checked)}
        disabled={change.isPending || !maySwitch}
        label={phone.on ? words.phone.on : words.phone.off}
      />
      {!phone.on && <span>{words.phone.offText}</span>}
      {problem}
      <Problem error={change.error} />
    </div>
  )
}
