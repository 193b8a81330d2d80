import { type QueryClient, queryOptions, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { call } from '../../api/client.ts'
import { connectionQuery, instanceQuery } from '../../api/queries.ts'
import type { Connection } from '../../api/types.ts'

/** When this page last requested a link, in milliseconds since 1970. */
function requestedAtQuery(instanceId: string) {
  return queryOptions<number>({
    queryKey: ['connect-requested', instanceId],
    queryFn: () => 0,
    // Only written, never fetched.
    enabled: false,
  })
}

/** Requests linking a number (by pairing code if `phone` is given), or another connection attempt. */
export async function requestConnect(
  client: QueryClient,
  instanceId: string,
  options: { phone?: string; confirmExported?: true } = {},
): Promise<void> {
  const requestedAt = Date.now()
  await call(`/instances/${instanceId}/connect`, { method: 'POST', body: options })
  client.setQueryData(requestedAtQuery(instanceId).queryKey, requestedAt)
  void client.invalidateQueries(connectionQuery(instanceId))
  void client.invalidateQueries(instanceQuery(instanceId))
}

export function useConnect(instanceId: string) {
  const client = useQueryClient()
  return useMutation({ mutationFn: (phone?: string) => requestConnect(client, instanceId, phone ? { phone } : {}) })
}

/** True if a link was requested that the connection does not show yet. */
export function useIsRequested({ instanceId, since }: Connection): boolean {
  const { data: requestedAt } = useQuery(requestedAtQuery(instanceId))
  return requestedAt !== undefined && Date.parse(since) < requestedAt
}
