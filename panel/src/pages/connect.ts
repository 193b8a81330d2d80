import { type QueryClient, queryOptions, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { call } from '../api/client.ts'
import { connectionQuery, instanceQuery } from '../api/queries.ts'
import type { Connection } from '../api/types.ts'

/** When this page last requested a link, in milliseconds since 1970. */
function askedQuery(instanceId: string) {
  return queryOptions<number>({
    queryKey: ['asked-to-connect', instanceId],
    queryFn: () => 0,
    // Only written, never fetched.
    enabled: false,
  })
}

/** Requests linking a number (by pairing code if `phone` is given), or another connection attempt. */
export async function askToConnect(client: QueryClient, instanceId: string, phone?: string): Promise<void> {
  const askedAt = Date.now()
  await call(`/instances/${instanceId}/connect`, { method: 'POST', body: phone ? { phone } : {} })
  client.setQueryData(askedQuery(instanceId).queryKey, askedAt)
  void client.invalidateQueries(connectionQuery(instanceId))
  void client.invalidateQueries(instanceQuery(instanceId))
}

export function useConnect(instanceId: string) {
  const client = useQueryClient()
  return useMutation({ mutationFn: (phone?: string) => askToConnect(client, instanceId, phone) })
}

/** True if a link was requested that the connection does not show yet. */
export function useIsAsked({ instanceId, since }: Connection): boolean {
  const { data: askedAt } = useQuery(askedQuery(instanceId))
  return askedAt !== undefined && Date.parse(since) < askedAt
}
