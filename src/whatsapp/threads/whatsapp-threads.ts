import { getDefaultAutoSelectFamilyAttemptTimeout } from 'node:net'
import { totalmem } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { getHeapStatistics } from 'node:v8'
import type { DestinationStream, Logger } from 'pino'
import { isLinked } from '../../domain/connection/connection.ts'
import type { SendTrace } from '../../domain/trace-context.ts'
import { backoffMs } from '../../kit/backoff.ts'
import { systemClock } from '../../kit/clock.ts'
import type { ConnectionRecord } from '../../store/connections/connections.ts'
import type { Lease } from '../../store/leases/leases.ts'
import type { Moment } from '../../store/leases/renewal.ts'
import type { Store } from '../../store/store.ts'
import type { ConnectionSettings } from '../connection/connection-settings.ts'
import { NO_CODES } from '../connection/status.ts'
import type { ThreadMedia, ThreadStore, Validity } from './messages.ts'
import { Suspects } from './suspects.ts'
import { type ThreadConnection, type ThreadConnectionOptions, WhatsappThread } from './whatsapp-thread.ts'

/** The pause before the instances of a dead thread start again. */
const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 4_000
/** How often a stopped instance is checked for a new request to connect, whose hint may be lost. */
const CHECK_GOAL_EVERY_MS = 10_000
/** Enough for a thread with a few instances. */
const LEAST_HEAP_MIB = 128
const MIB = 1024 * 1024

const RESTART =
  'The files of Pombal were replaced while it was running. Restart it: until then connections may not open.'

/** The network of an instance that is stopped because it killed its threads. */
const NONE_AFTER_CRASHES = {
  kind: 'none',
  cause: 'thread_crashed',
  reason: 'Each time this number connected, its part of the service crashed. Connect again to try once more.',
} as const

interface WhatsappThreadsOptions {
  store: ThreadStore & Pick<Store, 'clock' | 'hints'>
  /** How many threads. They start with the first instances. */
  threads: number
  settings: ConnectionSettings
  /** Where the files of messages are. Null: this node has no storage. */
  media: ThreadMedia | null
  /** Whether the program's files on disk differ from those that this process has loaded. */
  isReplaced(): boolean
  logger: Logger
  /** Where the complete lines of a thread's log are written. */
  logTo: DestinationStream
  /** An attempt to send a message has ended. Undefined: traces are off. */
  onSent?: ((send: SendTrace) => void) | undefined
  /** A thread does not know of a recent renewal of the leases. */
  onRenewalNeeded(): void
  /** A thread died. The next connections open another. */
  onThreadDied(): void
}

/**
 * Runs connections in threads of their own, spread evenly. A connection uses the store of the main thread, which executes its
 * calls in their order. A thread that dies ends only the connections in it. Their leases are released, so the
 * thread's last writes are either committed before the connections start again, or refused by the fence.
 */
export class WhatsappThreads {
  readonly #options: WhatsappThreadsOptions
  readonly #suspects = new Suspects()
  /** Threads by the group of suspects that they are reserved for; the other threads by a negative number. */
  readonly #threads = new Map<number, WhatsappThread>()
  #renewedAt: Moment | null = null
  /** Threads that died before they had loaded their code, since a thread last loaded it. No instance is the cause. */
  #failedStarts = 0
  #isReplaced = false

  constructor(options: WhatsappThreadsOptions) {
    this.#options = options
  }

  async connect(options: ThreadConnectionOptions): Promise<ThreadConnection> {
    const { instanceId } = options.lease
    const deaths = Math.max(this.#suspects.deathsOf(instanceId), this.#failedStarts)
    if (deaths > 0) await sleep(backoffMs(deaths - 1, FIRST_PAUSE_MS, LONGEST_PAUSE_MS))
    if (this.#suspects.isCause(instanceId)) return this.#rest(options)
    const group = this.#suspects.groupOf(instanceId)
    const thread = group === null ? this.#leastBusy() : (this.#threads.get(group) ?? this.#open(group))
    const connection = thread.connect(options)
    await this.#closeUnused()
    return connection
  }

  /** Call it after each renewal of the leases, with the moment at which the renewal began. */
  renewed(startedAt: Moment): void {
    this.#renewedAt = startedAt
    for (const thread of this.#threads.values()) thread.setValidity(this.#validity)
  }

  /** Call it when all connections have stopped. */
  async close(): Promise<void> {
    await Promise.all([...this.#threads.values()].map(thread => thread.close()))
  }

  get #validity(): Validity {
    return {
      renewedAt: this.#renewedAt,
      clockOffsetMs: this.#options.store.clock.now() - systemClock.steady(),
    }
  }

  /** Stops the instance and opens no socket. A new request to connect starts it again. */
  async #rest(options: ThreadConnectionOptions): Promise<ThreadConnection> {
    const { instanceId } = options.lease
    const { connections, hints } = this.#options.store
    const before = await connections.find(instanceId)
    if (before?.goal === 'online') await this.#recordStopped(options.lease, before)
    // From now on the stored goal stops it, on every node.
    this.#suspects.forget(instanceId)
    const startIfAsked = async () => {
      if ((await connections.find(instanceId))?.goalVersion !== before?.goalVersion) options.onCrashed()
    }
    const check = () =>
      void startIfAsked().catch(error => this.#options.logger.warn({ err: error, instanceId }, 'instance.check_failed'))
    const connection = this.#leastBusy().connect({ ...options, network: NONE_AFTER_CRASHES })
    const unsubscribe = hints.on('goal', check, instanceId)
    const timer = setInterval(check, CHECK_GOAL_EVERY_MS)
    void connection.ended.then(() => {
      unsubscribe()
      clearInterval(timer)
    })
    return connection
  }

  /** Without a goal, the instance stays stopped after a restart or a handover. */
  async #recordStopped(lease: Lease, before: ConnectionRecord): Promise<void> {
    const { store, logger } = this.#options
    const { cause, reason } = NONE_AFTER_CRASHES
    const state = isLinked(before.state) ? 'stopped' : 'unlinked'
    const settled = { goal: 'idle', ifGoalVersion: before.goalVersion } as const
    await store.connections.record(lease, { ...NO_CODES, state, cause, reason, ...settled }, store.clock.now())
    logger.info({ instanceId: lease.instanceId, state, cause, reason }, 'connection.changed')
  }

  #leastBusy(): WhatsappThread {
    const { threads } = this.#options
    let least: WhatsappThread | undefined
    for (let key = -1; key >= -threads; key -= 1) {
      const thread = this.#threads.get(key)
      if (thread === undefined) return least?.size === 0 && least.isPrompt ? least : this.#open(key)
      const isBetter = least === undefined || (thread.isPrompt && (!least.isPrompt || thread.size < least.size))
      if (isBetter) least = thread
    }
    return least!
  }

  #open(key: number): WhatsappThread {
    const { store, threads, settings, media, logger, logTo, onSent, onRenewalNeeded, onThreadDied } = this.#options
    this.#refuseOtherProgram()
    const thread = new WhatsappThread({
      data: {
        settings,
        media,
        logLevel: logger.level,
        hintsShared: store.hints.shared,
        threads,
        addressTurnMs: getDefaultAutoSelectFamilyAttemptTimeout(),
        traces: onSent !== undefined,
        validity: this.#validity,
      },
      heapMib: heapMibFor(threads),
      store,
      logTo,
      onSent,
      onRenewalNeeded,
      onLoaded: () => {
        this.#failedStarts = 0
      },
      onDied: (error, suspects) => {
        this.#threads.delete(key)
        if (thread.hasLoaded) this.#suspects.noteDeath(suspects)
        else this.#failedStarts += 1
        logger.error({ err: error, suspects: suspects.length }, 'whatsapp.thread_died')
        onThreadDied()
      },
    })
    this.#threads.set(key, thread)
    return thread
  }

  /** A new thread would load an update that was installed since the start, and the two versions may not understand each other. */
  #refuseOtherProgram(): void {
    if (!this.#options.isReplaced()) return
    if (!this.#isReplaced) this.#options.logger.fatal({ action: RESTART }, 'whatsapp.program_replaced')
    this.#isReplaced = true
    throw new Error(RESTART)
  }

  /** Ends threads that were reserved for suspects and run no instance any more. */
  async #closeUnused(): Promise<void> {
    for (const [key, thread] of this.#threads) {
      if (key < 0 || thread.size > 0) continue
      this.#threads.delete(key)
      await thread.close()
    }
  }
}

/**
 * An equal share of the machine's or the container's memory, and no more than V8 would allow. A thread that exhausts its share
 * ends alone. Without a limit, the system would end the whole process.
 */
function heapMibFor(threads: number): number {
  const memory = Math.min(process.constrainedMemory() || Number.POSITIVE_INFINITY, totalmem())
  const share = memory / (threads + 1)
  return Math.max(LEAST_HEAP_MIB, Math.floor(Math.min(share, getHeapStatistics().heap_size_limit) / MIB))
}
