import { useQuery, useQueryClient } from '@tanstack/react-query'
import { call } from '../../api/client.ts'
import { connectionQuery, instanceQuery } from '../../api/queries.ts'
import type { Connection } from '../../api/types.ts'
import { Passkey } from './passkey.tsx'

/** The steps with the passkey, for somebody who is signed in. */
export function PasskeyOfInstance({ connection }: { connection: Connection }) {
  const client = useQueryClient()
  const { instanceId } = connection
  const { data: instance } = useQuery(instanceQuery(instanceId))
  const post = async (path: string, body?: object) => {
    await call(`/instances/${instanceId}${path}`, { method: 'POST', ...(body && { body }) })
    void client.invalidateQueries(connectionQuery(instanceId))
  }
  return (
    <Passkey
      connection={connection}
      instance={`${instance?.name ?? instanceId} (${window.location.host})`}
      answer={assertion => post('/connection/passkey', { assertion })}
      confirm={() => post('/connection/passkey/confirm')}
      cancel={() => post('/logout')}
    />
  )
}
