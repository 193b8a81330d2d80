import { Button } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { Connection } from '../../api/types.ts'
import { Confirm } from '../../components/feedback/confirm.tsx'
import { Problem } from '../../components/feedback/problem.tsx'
import { useWords } from '../../i18n/i18n.tsx'
import { requestConnect, type useConnect } from './connect.ts'

interface ResumeProps {
  connection: Connection
  connect: ReturnType<typeof useConnect>
}

/** Connects a stopped instance, after a question if its session was exported. */
export function Resume({ connection: { state, cause, instanceId }, connect }: ResumeProps) {
  const words = useWords()
  const client = useQueryClient()
  const [isAsking, setAsking] = useState(false)
  const isExported = cause === 'exported'
  return (
    <>
      <Button
        mt="md"
        onClick={() => (isExported ? setAsking(true) : connect.mutate(undefined))}
        loading={connect.isPending}
      >
        {state === 'logged_out' ? words.connection.linkAgain : words.connection.resume}
      </Button>
      <Confirm
        opened={isAsking}
        onClose={() => setAsking(false)}
        title={words.connection.exportedTitle}
        action={words.connection.exportedAction}
        danger
        onConfirm={() => requestConnect(client, instanceId, { confirmExported: true })}
      >
        {words.connection.exportedText}
      </Confirm>
      <Problem error={connect.error} />
    </>
  )
}
