import { type QueryClient, useQueryClient } from '@tanstack/react-query'
import { useEffect, useSyncExternalStore } from 'react'
import { ADMIN } from './client.ts'
import { sessionQuery } from './queries.ts'

/** What the service says has changed: a reason to read it again. */
interface Change {
  instanceId: string
  what: 'connection' | 'instance' | 'webhook' | 'log'
}

export type LiveState = 'connecting' | 'live' | 'lost'

const RECONNECT_MS = 2_000
/** Changes are gathered for this long, so that a busy instance costs a few reads a second. */
const GATHER_MS = 250
/** How long a hidden tab keeps its stream: browsers allow six connections to one host. */
const HIDDEN_GRACE_MS = 30_000

type Listener = () => void
/** `instanceId` null: the list of instances itself. */
const logListeners = new Set<{ instanceId: string | null; listener: Listener }>()
const stateListeners = new Set<Listener>()
let state: LiveState = 'connecting'

/** @returns takes the listener off again */
export function onLogChange(instanceId: string | null, listener: Listener): () => void {
  const entry = { instanceId, listener }
  logListeners.add(entry)
  return () => logListeners.delete(entry)
}

export function useLiveState(): LiveState {
  return useSyncExternalStore(
    listener => {
      stateListeners.add(listener)
      return () => stateListeners.delete(listener)
    },
    () => state,
  )
}

/** Follows the changes of all instances while the page is shown. */
export function useLiveChanges(): void {
  const client = useQueryClient()
  useEffect(() => follow(client), [client])
}

function setState(next: LiveState): void {
  if (next === state) return
  state = next
  for (const listener of stateListeners) listener()
}

function follow(client: QueryClient): () => void {
  let source: EventSource | null = null
  let retry: ReturnType<typeof setTimeout> | undefined
  let hidden: ReturnType<typeof setTimeout> | undefined
  const gathered = new Gathered(client)

  function open(): void {
    clearTimeout(retry)
    source?.close()
    source = new EventSource(`${ADMIN}/changes`)
    let isFirstLook = true
    source.addEventListener('open', () => {
      // What changed while nobody followed is unknown.
      if (state !== 'connecting') gathered.addEverything()
      setState('live')
    })
    source.addEventListener('change', event => gathered.add(JSON.parse(event.data).data as Change))
    source.addEventListener('look', () => {
      // The first one only opens the stream; the others come because a change may go untold.
      if (!isFirstLook) gathered.addEverything()
      isFirstLook = false
    })
    source.addEventListener('error', () => {
      setState('lost')
      close()
      // Tells whether the session is over: then the page goes to sign-in.
      void client.refetchQueries(sessionQuery)
      retry = setTimeout(open, RECONNECT_MS)
    })
  }

  function close(): void {
    source?.close()
    source = null
    clearTimeout(retry)
  }

  function onVisibility(): void {
    clearTimeout(hidden)
    if (document.visibilityState === 'hidden') {
      hidden = setTimeout(() => {
        close()
        setState('lost')
      }, HIDDEN_GRACE_MS)
    } else if (!source) open()
  }

  open()
  document.addEventListener('visibilitychange', onVisibility)
  return () => {
    document.removeEventListener('visibilitychange', onVisibility)
    clearTimeout(hidden)
    gathered.stop()
    close()
    state = 'connecting'
  }
}

const KEYS_OF: Record<Change['what'], readonly string[]> = {
  connection: ['instance', 'connection', 'health', 'phone'],
  instance: ['instance', 'connection'],
  webhook: ['webhook'],
  log: ['message', 'event', 'conversations', 'counts'],
}
/** Sums that cost the service more than a row: read again less often. */
const SUMS = new Set<unknown>(['activity', 'statistics'])
const SUMS_EVERY_MS = 3_000

/** Gathers changes and has what is shown of them read again. */
class Gathered {
  readonly #client: QueryClient
  readonly #changes = new Map<string, Set<Change['what']>>()
  #everything = false
  #timer: ReturnType<typeof setTimeout> | undefined
  #sums: ReturnType<typeof setTimeout> | undefined

  constructor(client: QueryClient) {
    this.#client = client
  }

  add({ instanceId, what }: Change): void {
    this.#changes.set(instanceId, (this.#changes.get(instanceId) ?? new Set()).add(what))
    this.#schedule()
  }

  addEverything(): void {
    this.#everything = true
    this.#schedule()
  }

  stop(): void {
    clearTimeout(this.#timer)
    clearTimeout(this.#sums)
  }

  #schedule(): void {
    this.#timer ??= setTimeout(() => this.#apply(), GATHER_MS)
    this.#sums ??= setTimeout(() => {
      this.#sums = undefined
      void this.#client.invalidateQueries({ predicate: ({ queryKey }) => SUMS.has(queryKey[0]) })
    }, SUMS_EVERY_MS)
  }

  #apply(): void {
    this.#timer = undefined
    const changes = new Map(this.#changes)
    const everything = this.#everything
    this.#changes.clear()
    this.#everything = false
    const stale = new Set<string>()
    for (const [id, kinds] of changes)
      for (const kind of kinds) for (const key of KEYS_OF[kind]) stale.add(`${key} ${id}`)
    void this.#client.invalidateQueries({
      predicate: ({ queryKey: [name, id] }) =>
        name !== 'log' && !SUMS.has(name) && (everything || stale.has(`${name} ${id}`)),
    })
    const listChanged = [...changes.values()].some(kinds => kinds.has('connection') || kinds.has('instance'))
    for (const { instanceId, listener } of logListeners) {
      const changed = instanceId === null ? listChanged : changes.get(instanceId)?.has('log')
      if (everything || changed) listener()
    }
  }
}
