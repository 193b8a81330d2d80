import { Button, Stack } from '@mantine/core'
import { type QueryClient, queryOptions, useQuery, useQueryClient } from '@tanstack/react-query'
import { FRESH_TOKEN } from '../../api/queries.ts'
import { CodeBlock, CopyField } from '../../components/copy/copy.tsx'
import { Card } from '../../components/panels.tsx'
import { useWords } from '../../i18n/i18n.tsx'

/** A newly created token. Only this page's memory holds it. */
function freshTokenQuery(instanceId: string) {
  return queryOptions<string | null>({
    queryKey: [FRESH_TOKEN, instanceId],
    queryFn: () => null,
    // Only written, never fetched.
    enabled: false,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: Number.POSITIVE_INFINITY,
  })
}

export function keepToken(client: QueryClient, instanceId: string, token: string | null): void {
  client.setQueryData(freshTokenQuery(instanceId).queryKey, token)
}

/** Shows a new token until the reader confirms that it is copied. Shows nothing if there is none. */
export function FreshToken({ instanceId }: { instanceId: string }) {
  const words = useWords()
  const client = useQueryClient()
  const { data: token } = useQuery(freshTokenQuery(instanceId))
  if (!token) return null
  return (
    <Card title={words.token.title} hint={words.token.once}>
      <Stack gap="sm">
        <CopyField label={words.token.id} value={instanceId} />
        <CopyField label={words.token.token} value={token} />
        <CodeBlock label={words.token.curl} code={curl(token)} />
        <div>
          <Button variant="default" onClick={() => keepToken(client, instanceId, null)}>
            {words.token.done}
          </Button>
        </div>
      </Stack>
    </Card>
  )
}

function curl(token: string): string {
  return [
    `curl ${window.location.origin}/v1/messages/text \\`,
    `  -H 'Authorization: Bearer ${token}' \\`,
    `  -H 'Content-Type: application/json' \\`,
    `  -d '{"to":"5511987654321","text":"Hello!"}'`,
  ].join('\n')
}
