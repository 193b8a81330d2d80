import { Button } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { call, callData } from '../api/client.ts'
import { useWords } from '../i18n/i18n.tsx'
import { problemText } from './feedback/problem.tsx'
import { useToast } from './feedback/toasts.tsx'
import { RepeatIcon } from './icons.tsx'

/** Retries every delivery of an instance that waits for its next attempt, for example once the receiver is fixed. */
export function RetryAll({ instanceId }: { instanceId: string }) {
  const words = useWords()
  const toast = useToast()
  const path = `/instances/${instanceId}/endpoints`
  const retry = useMutation({
    mutationFn: async () => {
      const endpoints = await callData<{ id: string }[]>(path)
      const requested = await Promise.all(
        endpoints.map(({ id }) => call<{ data: { count: number } }>(`${path}/${id}/retry`, { method: 'POST' })),
      )
      return requested.reduce((sum, { data }) => sum + data.count, 0)
    },
    onSuccess: count => toast(words.deliveryHealth.retriedAll(count)),
    onError: error => toast(problemText(error, words), 'bad'),
  })
  return (
    <Button
      size="compact-sm"
      variant="default"
      leftSection={<RepeatIcon size={15} />}
      onClick={() => retry.mutate()}
      loading={retry.isPending}
    >
      {words.deliveryHealth.retryAll}
    </Button>
  )
}
