import { useQueryClient } from '@tanstack/react-query'
import { type ErrorComponentProps, useRouter } from '@tanstack/react-router'
import { useCallback, useEffect } from 'react'
import { ApiError } from './api/client.ts'
import { sessionQuery } from './api/queries.ts'
import { Problem } from './components/feedback/problem.tsx'
import classes from './shell.module.css'

const ASK_AGAIN_MS = 2_000

/** Replaces every page while the session state is unknown, and retries until the service answers. */
export function SessionProblem({ error }: ErrorComponentProps) {
  const client = useQueryClient()
  const router = useRouter()
  const askAgain = useCallback(async () => {
    const isAnswered = await client.fetchQuery({ ...sessionQuery, staleTime: 0 }).then(
      () => true,
      (refusal: unknown) => refusal instanceof ApiError && refusal.code === 'invalid_admin_key',
    )
    if (isAnswered) await router.invalidate()
  }, [client, router])

  useEffect(() => {
    const timer = setInterval(() => void askAgain(), ASK_AGAIN_MS)
    return () => clearInterval(timer)
  }, [askAgain])

  return (
    <main className={classes.content}>
      <Problem error={error} onRetry={() => void askAgain()} />
    </main>
  )
}
