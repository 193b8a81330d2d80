import { type Query, type QueryClient, useQueryClient } from '@tanstack/react-query'
import { useEffect, useSyncExternalStore } from 'react'
import { ADMIN } from './client.ts'
import { sessionQuery } from './queries.ts'

/** A change that the service reports. The changed data must be read again. */
interface Change {
  instanceId: string
  what: 'connection' | 'instance' | 'webhook' | 'log'
}

export type LiveState = 'connecting' | 'live' | 'lost'

const RECONNECT_MS = 2_000
/** The service sends a beat every 5 s. After a longer silence the connection is dead, or the service hangs. */
const SILENT_AFTER_MS = 15_000
const OPENED_WITHIN_MS = 5_000
const CHECK_EVERY_MS = 1_000
/** Changes are batched for this long, which limits a busy instance to a few reads a second. */
const BATCH_MS = 250
/** How long a hidden tab keeps its stream: browsers allow six connections to one host. */
const HIDDEN_GRACE_MS = 30_000

type Listener = () => void
/** With `instanceId` null, the listener follows the list of instances. */
const logListeners = new Set<{ instanceId: string | null; listener: Listener }>()
const stateListeners = new Set<Listener>()
let state: LiveState = 'connecting'
let lastEventAt = Date.now()

/** @returns a function that removes the listener */
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

/** When the service last answered, if it is known to be away. Otherwise null. */
export function useAwaySince(): number | null {
  return useLiveState() === 'lost' ? lastEventAt : null
}

/** Follows the changes of all instances while the page is visible. */
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
  let triedAt = 0
  let retry: ReturnType<typeof setTimeout> | undefined
  let hidden: ReturnType<typeof setTimeout> | undefined
  /** Failed connections since the last event from the service. */
  let failures = 0
  let wasLive = false
  const batch = new ChangeBatch(client)

  function noteEvent(): void {
    lastEventAt = Date.now()
    failures = 0
  }

  function open(): void {
    close()
    source = new EventSource(`${ADMIN}/changes`)
    triedAt = Date.now()
    let isFirst = true
    source.addEventListener('open', () => {
      noteEvent()
      // Changes while disconnected are unknown.
      if (wasLive) batch.addEverything()
      wasLive = true
      setState('live')
    })
    source.addEventListener('beat', noteEvent)
    source.addEventListener('change', event => {
      noteEvent()
      batch.add(JSON.parse(event.data).data as Change)
    })
    source.addEventListener('refresh', () => {
      noteEvent()
      // The first event only opens the stream. Later ones make up for changes that were not reported.
      if (!isFirst) batch.addEverything()
      isFirst = false
    })
    source.addEventListener('error', fail)
  }

  /** After the first failure only the connection may be broken. After the second one, the service counts as away. */
  function fail(): void {
    close()
    failures += 1
    setState(failures === 1 ? 'connecting' : 'lost')
    // Detects an ended session, which leads to the sign-in page.
    if (failures > 1) void client.refetchQueries(sessionQuery)
    retry = setTimeout(open, failures === 1 ? 0 : RECONNECT_MS)
  }

  function close(): void {
    source?.close()
    source = null
    clearTimeout(retry)
  }

  function failIfSilent(): void {
    if (!source) return
    const isOpen = source.readyState === EventSource.OPEN
    const since = isOpen ? Math.max(lastEventAt, triedAt) : triedAt
    if (Date.now() - since > (isOpen ? SILENT_AFTER_MS : OPENED_WITHIN_MS)) fail()
  }

  function onVisibility(): void {
    clearTimeout(hidden)
    if (document.visibilityState === 'hidden') {
      hidden = setTimeout(() => {
        close()
        failures = 0
        setState('connecting')
      }, HIDDEN_GRACE_MS)
    } else if (!source) open()
  }

  open()
  const watching = setInterval(failIfSilent, CHECK_EVERY_MS)
  document.addEventListener('visibilitychange', onVisibility)
  return () => {
    document.removeEventListener('visibilitychange', onVisibility)
    clearInterval(watching)
    clearTimeout(hidden)
    batch.stop()
    close()
    state = 'connecting'
  }
}

const KEYS_OF: Record<Change['what'], readonly string[]> = {
  connection: ['instance', 'connection', 'health', 'phone'],
  instance: ['instance', 'connection'],
  // The endpoints are among the sums, which are read after every change.
  webhook: [],
  log: ['message', 'event', 'conversations', 'media-usage'],
}
/** Sums cost the service more than a row and are therefore read less often. */
const SUMS = new Set<unknown>(['activity', 'attention', 'counts', 'endpoints', 'statistics'])
const SUMS_EVERY_MS = 3_000

/** Batches changes and invalidates the queries that they affect. */
export class ChangeBatch {
  readonly #client: QueryClient
  readonly #changes = new Map<string, Set<Change['what']>>()
  #everything = false
  #timer: ReturnType<typeof setTimeout> | undefined
  #sums: ReturnType<typeof setTimeout> | undefined
  /** Queries that are being read while their data changes, by hash. They are read again afterwards. */
  readonly #again = new Set<string>()

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
    this.#timer ??= setTimeout(() => this.#apply(), BATCH_MS)
    this.#sums ??= setTimeout(() => {
      this.#sums = undefined
      this.#invalidate(({ queryKey }) => SUMS.has(queryKey[0]))
    }, SUMS_EVERY_MS)
  }

  /** Reads the queries again. A read that is running is not aborted: over a slow link none would ever end. */
  #invalidate(predicate: (query: Query) => boolean): void {
    for (const query of this.#client.getQueryCache().findAll({ predicate, fetchStatus: 'fetching' })) {
      if (this.#again.has(query.queryHash)) continue
      this.#again.add(query.queryHash)
      const readAgain = () => {
        this.#again.delete(query.queryHash)
        this.#invalidate(other => other === query)
      }
      const readSoon = () => setTimeout(readAgain, BATCH_MS)
      query.promise?.then(readSoon, readSoon)
    }
    void this.#client.invalidateQueries({ predicate }, { cancelRefetch: false })
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
    this.#invalidate(({ queryKey: [name, id], meta }) => {
      if (name === 'log' || SUMS.has(name) || meta?.live === false) return false
      return everything || stale.has(`${name} ${id}`)
    })
    const listChanged = [...changes.values()].some(kinds => kinds.has('connection') || kinds.has('instance'))
    for (const { instanceId, listener } of logListeners) {
      const changed = instanceId === null ? listChanged : changes.get(instanceId)?.has('log')
      if (everything || changed) listener()
    }
  }
}
