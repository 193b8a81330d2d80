import type pg from 'pg'
import type { InstanceId } from '../../../domain/ids.ts'
import { backoffMs } from '../../../kit/backoff.ts'
import { waitAtMost } from '../../../kit/deadline.ts'
import { HINT_TOPICS, type HintTopic, LocalHints } from '../../hints.ts'
import type { StoreLogger } from '../logger.ts'
import { createClient } from './pools.ts'

const CHANNEL = 'pombal_hints'
/** PostgreSQL's limit is 8,000 bytes. */
const MAX_PAYLOAD_LENGTH = 7_500
/** `log` hints only wake the panel and callers that wait for events or files, so they are batched: a busy instance causes many. */
const BATCH_LOG_MS = 200
const ALIVE_EVERY_MS = 5_000
const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 5_000
/** How long a stopping node waits for its last hints to be sent. */
const CLOSE_WITHIN_MS = 1_000

/** Hints for the owner only. If this node is the owner, they are not sent to other nodes. */
const OWNERS_ONLY: ReadonlySet<HintTopic> = new Set(['queued', 'deliveries', 'plans', 'typing'])

/** The IDs of the instances. For `typing`, each ID is followed by a space and the `about` of the hint. */
type Payload = Partial<Record<HintTopic, string[]>>

/**
 * Exchanges hints with the other nodes by NOTIFY on a dedicated connection. NOTIFY runs after the commit, because a
 * transaction that notifies holds a database-wide lock while it commits. Hints that arrive while a statement is in flight
 * are sent with the next one. A connection that ends or stops answering is replaced; hints are lost until then.
 */
export class SharedHints extends LocalHints {
  readonly #url: string
  readonly #logger: StoreLogger | undefined
  #client: pg.Client | null = null
  #waiting = new Map<HintTopic, Set<string>>()
  #changedLogs = new Set<InstanceId>()
  #sending: Promise<void> | null = null
  #logTimer: NodeJS.Timeout | undefined
  #aliveTimer: NodeJS.Timeout | undefined
  #connectTimer: NodeJS.Timeout | undefined
  #failures = 0
  #closed = false

  constructor(url: string, logger: StoreLogger | undefined) {
    super(true)
    this.#url = url
    this.#logger = logger
  }

  /** Resolves once it listens. A connection that is lost later is replaced automatically. */
  async open(): Promise<void> {
    const client = createClient(this.#url)
    client.on('error', error => this.#lose(client, error))
    client.on('end', () => this.#lose(client, new Error('The connection ended.')))
    client.on('notification', ({ processId, payload }) => {
      if (processId !== own) this.#receive(payload ?? '')
    })
    let own = 0
    try {
      await client.connect()
      const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
      own = rows[0]!.pid
      // Hints may be lost, so their commits need not wait for the disk.
      await client.query(`set synchronous_commit = off; listen ${CHANNEL}`)
    } catch (error) {
      this.#discard(client)
      throw error
    }
    if (this.#closed) return this.#discard(client)
    this.#client = client
    this.#failures = 0
    this.#stayAlive(client)
  }

  override publish(topic: HintTopic, instanceId: InstanceId, about?: string): boolean {
    const ownerKnows = super.publish(topic, instanceId, about)
    if (this.#client === null || (ownerKnows && OWNERS_ONLY.has(topic))) return ownerKnows
    if (topic === 'log') {
      this.#changedLogs.add(instanceId)
      this.#logTimer ??= setTimeout(() => this.#sendLogs(), BATCH_LOG_MS)
      return ownerKnows
    }
    const ids = this.#waiting.get(topic) ?? new Set()
    this.#waiting.set(topic, ids.add(topic === 'typing' ? `${instanceId} ${about}` : instanceId))
    this.#send()
    return ownerKnows
  }

  override async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#connectTimer)
    clearTimeout(this.#aliveTimer)
    clearTimeout(this.#logTimer)
    this.#sendLogs()
    await waitAtMost(CLOSE_WITHIN_MS, this.#sending)
    const client = this.#client
    this.#client = null
    await waitAtMost(CLOSE_WITHIN_MS, client?.end())
  }

  #sendLogs(): void {
    this.#logTimer = undefined
    if (this.#changedLogs.size > 0) this.#waiting.set('log', this.#changedLogs)
    this.#changedLogs = new Set()
    this.#send()
  }

  #send(): void {
    if (this.#sending !== null) return
    // At the end of this event-loop turn, so that the hints of one commit are sent together.
    this.#sending = new Promise(resolve => setImmediate(resolve))
      .then(() => this.#sendAll())
      .finally(() => {
        this.#sending = null
      })
  }

  async #sendAll(): Promise<void> {
    while (this.#client !== null && this.#waiting.size > 0) {
      const client = this.#client
      const payloads = payloadsOf(this.#waiting)
      this.#waiting = new Map()
      try {
        await client.query(`select pg_notify('${CHANNEL}', payload) from unnest($1::text[]) as payloads(payload)`, [
          payloads,
        ])
      } catch (error) {
        this.#lose(client, error)
      }
    }
  }

  /** Detects a silently broken connection by a query that is not answered. */
  #stayAlive(client: pg.Client): void {
    this.#aliveTimer = setTimeout(() => {
      client.query('select 1').then(
        () => this.#client === client && !this.#closed && this.#stayAlive(client),
        error => this.#lose(client, error),
      )
    }, ALIVE_EVERY_MS)
  }

  #lose(client: pg.Client, error: unknown): void {
    if (this.#client !== client) return
    this.#client = null
    this.#waiting = new Map()
    clearTimeout(this.#aliveTimer)
    this.#discard(client)
    if (this.#closed) return
    this.#logger?.warn({ error: (error as Error).message }, 'hints.connection_lost')
    this.#connectLater()
  }

  #connectLater(): void {
    this.#connectTimer = setTimeout(
      () => {
        this.open().then(
          () => this.#logger?.warn({}, 'hints.connected_again'),
          () => !this.#closed && this.#connectLater(),
        )
      },
      backoffMs(this.#failures, FIRST_PAUSE_MS, LONGEST_PAUSE_MS),
    )
    this.#failures += 1
  }

  #discard(client: pg.Client): void {
    waitAtMost(CLOSE_WITHIN_MS, client.end())
      .then(() => {
        // pg waits for the peer to close the connection, which a dead peer never does.
        ;(client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy()
      })
      .catch(() => undefined)
  }

  #receive(payload: string): void {
    for (const [topic, ids] of Object.entries(parsePayload(payload))) {
      for (const id of ids) {
        const [instanceId = '', ...about] = id.split(' ')
        super.publish(topic as HintTopic, instanceId, about.join(' ') || undefined, 'elsewhere')
      }
    }
  }
}

/** Splits the hints into as few payloads as possible. */
function payloadsOf(waiting: ReadonlyMap<HintTopic, ReadonlySet<string>>): string[] {
  const payloads: string[] = []
  let payload: Payload = {}
  let length = 0
  for (const [topic, ids] of waiting) {
    for (const instanceId of ids) {
      if (length > MAX_PAYLOAD_LENGTH - 100) {
        payloads.push(JSON.stringify(payload))
        payload = {}
        length = 0
      }
      payload[topic] ??= []
      payload[topic].push(instanceId)
      length += instanceId.length + 3
    }
  }
  payloads.push(JSON.stringify(payload))
  return payloads
}

/** Any database user can send on the channel, so invalid payloads are ignored. */
function parsePayload(text: string): Payload {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    return {}
  }
  const payload: Payload = {}
  for (const topic of HINT_TOPICS) {
    const ids = (parsed as Record<string, unknown> | null)?.[topic]
    if (Array.isArray(ids)) payload[topic] = ids.filter(id => typeof id === 'string')
  }
  return payload
}
