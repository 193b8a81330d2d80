import { Button } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { call } from '../api/client.ts'
import { connectionQuery, instanceQuery } from '../api/queries.ts'
import type { Connection } from '../api/types.ts'
import { CONNECTION_TONES, ConnectionBadge } from '../components/badges.tsx'
import { Problem } from '../components/problem.tsx'
import { Ago } from '../components/time.tsx'
import { Waiting } from '../components/waiting.tsx'
import { useWords } from '../i18n/i18n.tsx'
import classes from './connection-card.module.css'
import { Linking } from './linking.tsx'

/** Asks the service to link a number, or to try again. */
export function useConnect(instanceId: string) {
  const client = useQueryClient()
  return useMutation({
    mutationFn: (phone?: string) =>
      call(`/instances/${instanceId}/connect`, { method: 'POST', body: phone ? { phone } : {} }),
    onSuccess: () => {
      void client.invalidateQueries(connectionQuery(instanceId))
      void client.invalidateQueries(instanceQuery(instanceId))
    },
  })
}

/** How the number is connected, in words, and what can be done about it. */
export function ConnectionCard({ connection }: { connection: Connection }) {
  const words = useWords()
  const { state, kind, instanceId, reason, since, cause } = connection
  const connect = useConnect(instanceId)
  const isSandboxLinking = kind === 'sandbox' && (state === 'linking' || state === 'connecting' || state === 'unlinked')
  const isLinking = kind === 'whatsapp' && state === 'linking'
  const tells = state === 'stopped' || state === 'disconnected' || state === 'reconnecting' || state === 'logged_out'
  return (
    <section className={classes.card} data-tone={CONNECTION_TONES[state]}>
      <div className={classes.top}>
        <ConnectionBadge state={state} />
        <span className={classes.since}>
          <Ago at={since} />
        </span>
      </div>
      <p className={classes.text}>
        {isSandboxLinking ? words.connection.sandboxLinking : words.connection.states[state].text}
      </p>
      {cause && cause !== 'code_expired' && <p className={classes.text}>{words.connection.causes[cause]}</p>}
      {(tells || (isSandboxLinking && state === 'unlinked')) && reason && (
        <p className={classes.reason}>
          {words.connection.reason}: <q>{reason}</q>
        </p>
      )}
      {isSandboxLinking && state !== 'unlinked' && <Waiting text={words.connection.states[state].name} />}
      {kind === 'whatsapp' && (isLinking || state === 'unlinked' || state === 'logged_out') && (
        <Linking connection={connection} connect={connect} />
      )}
      {(state === 'stopped' || (kind === 'sandbox' && state === 'logged_out')) && (
        <Button mt="md" onClick={() => connect.mutate(undefined)} loading={connect.isPending}>
          {state === 'stopped' ? words.connection.resume : words.connection.linkAgain}
        </Button>
      )}
      {kind !== 'whatsapp' && <Problem error={connect.error} />}
    </section>
  )
}
