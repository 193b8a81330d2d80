import { Button, Group, TextInput } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { call, callData } from '../../api/client.ts'
import { instanceQuery } from '../../api/queries.ts'
import type { Instance } from '../../api/types.ts'
import { useMay } from '../../api/use-role.ts'
import { CopyIconButton } from '../../components/copy/copy.tsx'
import { Confirm } from '../../components/feedback/confirm.tsx'
import { Problem } from '../../components/feedback/problem.tsx'
import { useToast } from '../../components/feedback/toasts.tsx'
import { Card, Fact, Facts } from '../../components/panels.tsx'
import { Time } from '../../components/time.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import { FreshToken, keepToken } from './fresh-token.tsx'
import { useInstance } from './instance.tsx'
import { Keys } from './keys/keys.tsx'
import { PaceCard } from './pace.tsx'
import { CallsCard } from './settings/calls.tsx'
import { PersonCard } from './settings/person.tsx'
import { ProxyCard } from './settings/proxy.tsx'
import { useFormValues } from './settings/use-form-values.ts'

export function InstanceSettings() {
  const instance = useInstance()
  const isOwner = useMay('owner')
  const isOperator = useMay('operator')
  return (
    <>
      <FreshToken instanceId={instance.id} />
      {isOperator && <Rename instance={instance} />}
      <FactsCard instance={instance} />
      {isOperator && <PaceCard instanceId={instance.id} />}
      {isOperator && <CallsCard instanceId={instance.id} />}
      {isOperator && instance.kind === 'whatsapp' && <ProxyCard instanceId={instance.id} />}
      {isOwner && <Token instance={instance} />}
      {isOwner && <Keys instanceId={instance.id} />}
      {isOwner && <PersonCard instanceId={instance.id} />}
      {isOperator && instance.state !== 'unlinked' && instance.state !== 'logged_out' && <Logout instance={instance} />}
      {isOwner && <Remove instance={instance} />}
    </>
  )
}

function Rename({ instance }: { instance: Instance }) {
  const words = useWords()
  const toast = useToast()
  const client = useQueryClient()
  const form = useFormValues({ name: instance.name })
  const { name } = form.values
  const rename = useMutation({
    mutationFn: (to: string) =>
      callData<Instance>(`/instances/${instance.id}`, { method: 'PATCH', body: { name: to.trim() } }),
    onSuccess: (changed, to) => {
      client.setQueryData(instanceQuery(instance.id).queryKey, changed)
      form.onSaved({ name: to })
      toast(words.instanceSettings.renamed)
    },
  })
  return (
    <Card title={words.instanceSettings.rename}>
      <form
        onSubmit={event => {
          event.preventDefault()
          rename.mutate(name)
        }}
      >
        <Group align="flex-start">
          <TextInput
            aria-label={words.instanceSettings.rename}
            value={name}
            maxLength={100}
            onChange={event => form.change('name', event.currentTarget.value)}
            flex={1}
            miw={200}
          />
          <Button
            type="submit"
            variant="default"
            loading={rename.isPending}
            disabled={!name.trim() || name.trim() === instance.name}
          >
            {words.common.save}
          </Button>
        </Group>
        <Problem error={rename.error} />
      </form>
    </Card>
  )
}

function FactsCard({ instance }: { instance: Instance }) {
  const words = useWords()
  return (
    <Card title={words.instanceSettings.facts}>
      <Facts>
        <Fact name={words.instanceSettings.id}>
          <Group gap={6} wrap="nowrap">
            <code>{instance.id}</code>
            <CopyIconButton value={instance.id} what={words.instanceSettings.id} />
          </Group>
        </Fact>
        <Fact name={words.instanceSettings.kind}>{words.instanceSettings.kinds[instance.kind]}</Fact>
        <Fact name={words.connection.number}>{instance.phone ? `+${instance.phone}` : words.instances.noNumber}</Fact>
        <Fact name={words.instanceSettings.created}>
          <Time at={instance.createdAt} />
        </Fact>
      </Facts>
    </Card>
  )
}

function Token({ instance }: { instance: Instance }) {
  const words = useWords()
  const client = useQueryClient()
  const [isAsking, setAsking] = useState(false)
  return (
    <Card
      title={words.instanceSettings.token}
      hint={words.instanceSettings.tokenHint}
      action={
        <Button variant="default" onClick={() => setAsking(true)}>
          {words.instanceSettings.newToken}
        </Button>
      }
    >
      <Confirm
        opened={isAsking}
        onClose={() => setAsking(false)}
        title={words.instanceSettings.newTokenTitle}
        action={words.instanceSettings.newTokenAction}
        danger
        onConfirm={async () => {
          const { token } = await callData<{ token: string }>(`/instances/${instance.id}/token`, { method: 'POST' })
          keepToken(client, instance.id, token)
          window.scrollTo({ top: 0 })
        }}
      >
        {words.instanceSettings.newTokenText}
      </Confirm>
    </Card>
  )
}

function Logout({ instance }: { instance: Instance }) {
  const words = useWords()
  const toast = useToast()
  const [isAsking, setAsking] = useState(false)
  return (
    <Card
      title={words.instanceSettings.logout}
      hint={words.instanceSettings.logoutHint}
      action={
        <Button variant="default" onClick={() => setAsking(true)}>
          {words.instanceSettings.logoutAction}
        </Button>
      }
    >
      <Confirm
        opened={isAsking}
        onClose={() => setAsking(false)}
        title={words.instanceSettings.logoutTitle}
        action={words.instanceSettings.logoutAction}
        danger
        onConfirm={async () => {
          await call(`/instances/${instance.id}/logout`, { method: 'POST' })
          toast(words.instanceSettings.loggedOut)
        }}
      >
        {words.instanceSettings.logoutText}
      </Confirm>
    </Card>
  )
}

function Remove({ instance }: { instance: Instance }) {
  const words = useWords()
  const toast = useToast()
  const navigate = useNavigate()
  const client = useQueryClient()
  const [isAsking, setAsking] = useState(false)
  return (
    <Card
      title={words.instanceSettings.remove}
      hint={words.instanceSettings.removeHint}
      tone="danger"
      action={
        <Button color="red" variant="light" onClick={() => setAsking(true)}>
          {words.instanceSettings.remove}
        </Button>
      }
    >
      <Confirm
        opened={isAsking}
        onClose={() => setAsking(false)}
        title={words.instanceSettings.removeTitle}
        action={words.instanceSettings.removeAction}
        danger
        typed={instance.name}
        onConfirm={async () => {
          await call(`/instances/${instance.id}`, { method: 'DELETE' })
          await navigate({ to: '/' })
          client.removeQueries({ predicate: ({ queryKey }) => queryKey[1] === instance.id })
          toast(words.instanceSettings.removed(instance.name))
        }}
      >
        <ul>
          {words.instanceSettings.removeText.map(line => (
            <li key={line}>{line}</li>
          ))}
        </ul>
      </Confirm>
    </Card>
  )
}
