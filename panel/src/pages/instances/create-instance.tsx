import { Button, Group, Input, Radio, Stack, TextInput } from '@mantine/core'
import { type QueryClient, useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useId, useLayoutEffect, useState } from 'react'
import { callData } from '../../api/client.ts'
import { instanceQuery, sessionQuery } from '../../api/queries.ts'
import type { CreatedInstance, InstanceKind } from '../../api/types.ts'
import { useAction } from '../../api/use-action.ts'
import { Dialog } from '../../components/feedback/dialog.tsx'
import { Problem } from '../../components/feedback/problem.tsx'
import { GuideLink } from '../../components/guide-link.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import { requestConnect } from '../instance/connect.ts'
import { keepToken } from '../instance/fresh-token.tsx'
import { readSessionFiles } from './session-files.ts'

/** Creates an instance and keeps its token while the page is open. The service returns the token only once. */
export async function createInstance(
  client: QueryClient,
  body: { kind: InstanceKind; name?: string },
): Promise<CreatedInstance> {
  const { token, ...instance } = await callData<CreatedInstance>('/instances', { method: 'POST', body })
  keepToken(client, instance.id, token)
  // Most users link the instance next. If the request fails, the page has a button for it.
  if (body.kind === 'whatsapp') void requestConnect(client, instance.id).catch(() => undefined)
  client.setQueryData(instanceQuery(instance.id).queryKey, instance)
  return { ...instance, token }
}

/** Takes over a number that another program has linked. The instance is not connected yet. */
async function importSession(client: QueryClient, name: string, chosen: FileList | null): Promise<CreatedInstance> {
  const { folder, files } = await readSessionFiles(chosen ?? [])
  const body = { name: name || folder || 'WhatsApp', files }
  const { token, ...instance } = await callData<CreatedInstance>('/instances/import', { method: 'POST', body })
  keepToken(client, instance.id, token)
  return { ...instance, token }
}

type Choice = InstanceKind | 'import'

interface CreateInstanceProps {
  opened: boolean
  onClose: () => void
  /** The initial choice. */
  choice?: Choice
}

export function CreateInstance({ opened, onClose, choice = 'whatsapp' }: CreateInstanceProps) {
  const words = useWords()
  const client = useQueryClient()
  const navigate = useNavigate()
  const { data: session } = useQuery(sessionQuery)
  const [kind, setKind] = useState<Choice>(choice)
  const [name, setName] = useState('')
  const [chosen, setChosen] = useState<FileList | null>(null)
  const folderId = useId()
  const create = useAction(
    {
      mutationFn: () =>
        kind === 'import'
          ? importSession(client, name.trim(), chosen)
          : createInstance(client, { kind, ...(name.trim() && { name: name.trim() }) }),
      onSuccess: ({ id }) => navigate({ to: '/instances/$id', params: { id } }),
    },
    { isFinal: true },
  )
  const { reset } = create
  useLayoutEffect(() => {
    if (opened) reset()
  }, [opened, reset])
  return (
    <Dialog opened={opened} onClose={onClose} title={words.instances.createTitle} isBusy={create.isPending}>
      <form
        onSubmit={event => {
          event.preventDefault()
          create.mutate()
        }}
      >
        <Stack>
          <TextInput
            label={words.instances.name}
            description={words.instances.nameHint}
            placeholder={words.instances.namePlaceholder}
            value={name}
            maxLength={100}
            onChange={event => setName(event.currentTarget.value)}
            data-autofocus
          />
          <Radio.Group label={words.instances.kind} value={kind} onChange={value => setKind(value as Choice)}>
            <Stack mt={6} gap="sm">
              <Radio value="whatsapp" label={words.instances.linkNumber} description={words.instances.linkNumberHint} />
              <Radio
                value="sandbox"
                label={words.instances.trySandbox}
                description={session?.sandbox ? words.instances.trySandboxHint : words.problems.sandbox_disabled}
                disabled={!session?.sandbox}
              />
              <Radio
                value="import"
                label={words.instances.importSession}
                description={
                  <>
                    {words.instances.importSessionHint} <GuideLink to="migrating" />
                  </>
                }
              />
            </Stack>
          </Radio.Group>
          {kind === 'import' && (
            <Input.Wrapper label={words.instances.sessionFolder} id={folderId}>
              <input
                id={folderId}
                type="file"
                multiple
                {...{ webkitdirectory: '' }}
                onChange={event => setChosen(event.currentTarget.files)}
              />
            </Input.Wrapper>
          )}
          <Problem error={create.error} />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose} disabled={create.isPending}>
              {words.common.cancel}
            </Button>
            <Button type="submit" loading={create.isPending} disabled={kind === 'import' && !chosen?.length}>
              {words.instances.createAction}
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  )
}
