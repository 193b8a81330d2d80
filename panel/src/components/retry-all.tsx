import { Button } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { call } from '../api/client.ts'
import { endpointsQuery } from '../api/queries.ts'
import { useAction } from '../api/use-action.ts'
import { useMay } from '../api/use-role.ts'
import { useWords } from '../i18n/i18n.tsx'
import { problemText } from './feedback/problem.tsx'
import { useToast } from './feedback/toasts.tsx'
import { RepeatIcon } from './icons.tsx'

interface RetryAllProps {
  instanceId: string
  /** Default: all endpoints of the instance. */
  endpoint?: { id: string; url: string }
}

/** Retries every delivery that waits for its next attempt. Renders nothing for a viewer. */
export function RetryAll({ instanceId, endpoint }: RetryAllProps) {
  const words = useWords()
  const toast = useToast()
  const client = useQueryClient()
  const mayRetry = useMay('operator')
  const retry = useAction({
    mutationFn: async () => {
      const endpoints = endpoint ? [endpoint] : await client.fetchQuery({ ...endpointsQuery(instanceId), staleTime: 0 })
      const path = `/instances/${instanceId}/endpoints`
      const requested = await Promise.all(
        endpoints.map(({ id }) => call<{ data: { count: number } }>(`${path}/${id}/retry`, { method: 'POST' })),
      )
      return requested.reduce((sum, { data }) => sum + data.count, 0)
    },
    onSuccess: count => toast(words.deliveryHealth.retriedAll(count)),
    onError: error => toast(problemText(error, words), 'bad'),
  })
  if (!mayRetry) return null
  return (
    <Button
      size="compact-sm"
      variant="default"
      leftSection={<RepeatIcon size={15} />}
      onClick={() => retry.mutate()}
      loading={retry.isPending}
      {...(endpoint && { 'aria-label': words.endpoints.retryOf(endpoint.url) })}
    >
      {endpoint ? words.endpoints.retry : words.deliveryHealth.retryAll}
    </Button>
  )
}
