import { type UseMutationOptions, type UseMutationResult, useMutation } from '@tanstack/react-query'
import { useCallback, useLayoutEffect, useRef, useState } from 'react'

interface Ending {
  /** True if a success closes the form. No call starts after a success, until `reset` or until the form is opened again. */
  isFinal?: boolean
}

/**
 * `useMutation` for a call that must not be made twice. `mutate` does nothing while a call runs, so a double click makes one
 * call. The disabled button alone is not enough: it appears with the next render. `reset` does nothing while a call runs.
 */
export function useAction<T, V = void, C = unknown>(
  options: UseMutationOptions<T, Error, V, C>,
  { isFinal = false }: Ending = {},
): UseMutationResult<T, Error, V, C> {
  const phase = useRef<'ready' | 'running' | 'settled' | 'final'>('ready')
  const [settled, setSettled] = useState(0)
  const mutation = useMutation<T, Error, V, C>({
    ...options,
    onSettled: (...outcome) => {
      phase.current = isFinal && outcome[1] === null ? 'final' : 'settled'
      setSettled(count => count + 1)
      return options.onSettled?.(...outcome)
    },
  })
  // The next call may start once the page shows the outcome of this one.
  useLayoutEffect(() => {
    if (settled > 0 && phase.current === 'settled') phase.current = 'ready'
  }, [settled])
  const { mutate: start, reset: forget } = mutation
  const mutate = useCallback<typeof start>(
    (...call) => {
      if (phase.current !== 'ready') return
      phase.current = 'running'
      start(...call)
    },
    [start],
  )
  const reset = useCallback(() => {
    if (phase.current === 'running') return
    phase.current = 'ready'
    forget()
  }, [forget])
  return { ...mutation, mutate, reset }
}
