import { type QueryClient, queryOptions, useQuery, useQueryClient } from '@tanstack/react-query'
import { callData } from '../../api/client.ts'
import { connectionQuery, instanceQuery } from '../../api/queries.ts'
import type { Connection } from '../../api/types.ts'
import { useAction } from '../../api/use-action.ts'

/** `since` of the connection when this page last requested a link. It changes once the service acts on the request. */
function requestedQuery(instanceId: string) {
  return queryOptions<string>({
    queryKey: ['connect-requested', instanceId],
    queryFn: () => '',
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
  const before = client.getQueryData(connectionQuery(instanceId).queryKey)
  const after = await callData<Connection>(`/instances/${instanceId}/connect`, { method: 'POST', body: options })
  client.setQueryData(requestedQuery(instanceId).queryKey, (before ?? after).since)
  void client.invalidateQueries(connectionQuery(instanceId))
  void client.invalidateQueries(instanceQuery(instanceId))
}

export function useConnect(instanceId: string) {
  const client = useQueryClient()
  return useAction({ mutationFn: (phone?: string) => requestConnect(client, instanceId, phone ? { phone } : {}) })
}

/** True if a link was requested that the connection does not show yet. */
export function useIsRequested({ instanceId, since }: Connection): boolean {
  const { data: sinceAtRequest } = useQuery(requestedQuery(instanceId))
  return since === sinceAtRequest
}
