import { Button, Group, Stack, TextInput } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { callData } from '../../../api/client.ts'
import { proxyQuery } from '../../../api/queries.ts'
import type { ProxySetting } from '../../../api/types.ts'
import { Problem } from '../../../components/feedback/problem.tsx'
import { useToast } from '../../../components/feedback/toasts.tsx'
import { Card } from '../../../components/panels.tsx'
import { useWords } from '../../../i18n/i18n.tsx'

/** The proxy that the instance uses to connect to WhatsApp. */
export function ProxyCard({ instanceId }: { instanceId: string }) {
  const words = useWords()
  const { data, error } = useQuery(proxyQuery(instanceId))
  return (
    <Card title={words.proxy.title} hint={words.proxy.hint}>
      {data && <ProxyForm instanceId={instanceId} current={data.url} />}
      <Problem error={error} />
    </Card>
  )
}

function ProxyForm({ instanceId, current }: { instanceId: string; current: string | null }) {
  const { proxy: texts } = useWords()
  const toast = useToast()
  const client = useQueryClient()
  const [url, setUrl] = useState('')
  const save = useMutation({
    mutationFn: (next: string | null) =>
      callData<ProxySetting>(`/instances/${instanceId}/proxy`, { method: 'PUT', body: { url: next } }),
    onSuccess: (saved, next) => {
      client.setQueryData(proxyQuery(instanceId).queryKey, saved)
      setUrl(now => (now.trim() === next ? '' : now))
      toast(saved.url === null ? texts.removed : texts.saved)
    },
  })
  return (
    <form
      onSubmit={event => {
        event.preventDefault()
        save.mutate(url.trim())
      }}
    >
      <Stack gap="sm">
        {current !== null && (
          <span>
            {texts.current} <code>{current}</code>
          </span>
        )}
        <TextInput
          label={texts.url}
          description={texts.urlHint}
          placeholder="socks5://user:password@proxy.example:1080"
          value={url}
          maxLength={2_048}
          autoComplete="off"
          spellCheck={false}
          onChange={event => setUrl(event.currentTarget.value)}
        />
        <Group>
          <Button type="submit" variant="default" loading={save.isPending} disabled={url.trim() === ''}>
            {texts.save}
          </Button>
          {current !== null && (
            <Button variant="subtle" color="gray" disabled={save.isPending} onClick={() => save.mutate(null)}>
              {texts.remove}
            </Button>
          )}
        </Group>
        <Problem error={save.error} />
      </Stack>
    </form>
  )
}
