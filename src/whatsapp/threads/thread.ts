/** The entry point of a WhatsApp thread, started by `WhatsappThread`. */
import { flushCompileCache } from 'node:module'
import { setDefaultAutoSelectFamilyAttemptTimeout } from 'node:net'
import { parentPort, workerData } from 'node:worker_threads'
import { pino } from 'pino'
import type { PairingCode } from '../../domain/connection/connection.ts'
import { systemClock } from '../../kit/clock.ts'
import { EventLoopBudget } from '../../kit/event-loop-budget.ts'
import { lowerThreadPriority } from '../../kit/thread-priority.ts'
import { Turns } from '../../kit/turns.ts'
import { openFiles } from '../../media/open-files.ts'
import { Pictures } from '../../pictures/pictures.ts'
import { LocalHints } from '../../store/hints.ts'
import { Renewal } from '../../store/leases/renewal.ts'
import { containLibraryErrors } from '../baileys/library-scope.ts'
import { passKeysAsObjects } from '../baileys/signal/library-patches.ts'
import { silenceSignalConsole } from '../baileys/signal/quiet-libsignal.ts'
import { Connection } from '../connection/connection.ts'
import { ConnectionPacing } from '../connection/connection-pacing.ts'
import type { ConnectionFiles } from '../connection/connection-parts.ts'
import type { ConnectionNetwork } from '../connection/connection-settings.ts'
import {
  BatchedPort,
  type FromThread,
  type Subject,
  type ThreadData,
  type ThreadMedia,
  type ThreadNetwork,
  type ThreadStore,
  type ToThread,
  type Validity,
} from './messages.ts'
import { fromPlain } from './plain-errors.ts'

/**
 * If cores are scarce, callers and webhooks go first, because they wait for an answer. With a larger difference,
 * connections would hardly run beside another busy program.
 */
const LOWER_BY = 4
/** The most files that the connections of a thread fetch from WhatsApp at the same time. */
const FETCHES_AT_ONCE = 12

type Call = Extract<FromThread, { call: number }>
type Unnumbered<C> = C extends Call ? Omit<C, 'call'> : never

/** The calls that this thread makes to the main thread. They arrive in order. */
class Calls {
  readonly #port: BatchedPort<FromThread>
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>()
  #last = 0

  constructor(port: BatchedPort<FromThread>) {
    this.#port = port
  }

  make(call: Unnumbered<Call>): Promise<unknown> {
    const number = ++this.#last
    const result = Promise.withResolvers<unknown>()
    this.#waiting.set(number, result)
    this.#port.post({ ...call, call: number })
    return result.promise
  }

  /** Removes a call whose result has arrived. */
  end(number: number): PromiseWithResolvers<unknown> | undefined {
    const waiting = this.#waiting.get(number)
    this.#waiting.delete(number)
    return waiting
  }

  /** A part of the store, whose methods are called in the main thread. */
  store<S extends Subject>(subject: S): ThreadStore[S] {
    const methods: ProxyHandler<object> = {
      get:
        (_, method) =>
        (...args: unknown[]) => {
          const result = this.make({ kind: 'call', subject, method: String(method), args })
          // Messages wait until their keys are committed. A long turn of this thread must not delay that.
          if (subject === 'credentials') this.#port.flush()
          return result
        },
    }
    // The main thread answers each method as its interface states.
    return new Proxy({}, methods) as ThreadStore[S]
  }
}

/** The connections of one thread. */
class Thread {
  readonly #settings: ThreadData['settings']
  readonly #port = new BatchedPort<FromThread>(parentPort!, (message, error) => {
    // Only a call can be undeliverable, because of its arguments.
    if (!('call' in message)) throw error
    this.#calls.end(message.call)?.reject(error)
  })
  readonly #calls = new Calls(this.#port)
  readonly #hints: LocalHints
  readonly #store
  readonly #files: ConnectionFiles | null
  readonly #renewal = new Renewal()
  readonly #shared
  readonly #connections = new Map<number, Connection>()
  /** Connections that lost their lease. */
  readonly #revoked = new Set<number>()
  readonly logger
  readonly #traces: boolean
  #clockOffsetMs = 0

  constructor({ settings, media, logLevel, hintsShared, threads, traces, validity }: ThreadData) {
    this.#settings = settings
    this.#traces = traces
    this.#shared = { eventLoopBudget: new EventLoopBudget(), pacing: new ConnectionPacing(undefined, threads) }
    this.#hints = new LocalHints(hintsShared)
    this.#store = {
      connections: this.#calls.store('connections'),
      messages: this.#calls.store('messages'),
      events: this.#calls.store('events'),
      credentials: this.#calls.store('credentials'),
      numbers: this.#calls.store('numbers'),
      paces: this.#calls.store('paces'),
      directory: this.#calls.store('directory'),
      media: this.#calls.store('media'),
      downloads: this.#calls.store('downloads'),
      hints: this.#hints,
    }
    this.logger = pino({ level: logLevel }, { write: line => this.#port.post({ kind: 'log', line }) })
    this.#files = media && this.#openFiles(media, threads)
    // Called when the last renewal that this thread knows of is too old.
    this.#renewal.onExpired = () => this.#port.post({ kind: 'renew' })
    this.#setValidity(validity)
  }

  readonly take = (messages: readonly ToThread[]): void => {
    for (const message of messages) {
      if (message.kind === 'result') this.#calls.end(message.call)?.resolve(message.value)
      else if (message.kind === 'error') this.#calls.end(message.call)?.reject(fromPlain(message.error))
      else if (message.kind === 'hint')
        this.#hints.publish(message.topic, message.instanceId, message.about, message.origin)
      else if (message.kind === 'start') this.#start(message)
      else if (message.kind === 'stop') void this.#stop(message)
      else if (message.kind === 'revoke') this.#revoke(message.connection)
      else if (message.kind === 'validity') this.#setValidity(message.validity)
      else this.#port.post({ kind: 'heartbeat' })
    }
  }

  #openFiles(media: ThreadMedia, threads: number): ConnectionFiles {
    const { reader, receiver } = openFiles({ ...media, threads, logger: this.logger }, this.#store.media)
    const pictures = new Pictures({
      onFailed: (mediaId, why) => this.logger.info({ mediaId, why }, 'media.no_thumbnail'),
    })
    return {
      reader: {
        find: (instanceId, mediaId) => reader.find(instanceId, mediaId),
        readPicture: (file, signal) => pictures.read(file, signal),
      },
      receiver,
      turns: new Turns(FETCHES_AT_ONCE),
    }
  }

  #start({ connection: number, lease, network }: Extract<ToThread, { kind: 'start' }>): void {
    const connection = new Connection({
      ...this.#shared,
      lease,
      store: this.#store,
      network: this.#networkOf(number, network),
      settings: this.#settings,
      files: this.#files,
      mayAct: () => !this.#revoked.has(number) && this.#renewal.mayAct(),
      logger: this.logger,
      now: () => Math.round(systemClock.steady() + this.#clockOffsetMs),
      onLinking: isLinking => this.#port.post({ kind: 'linking', connection: number, isLinking }),
      ...(this.#traces && { onSent: send => this.#port.post({ kind: 'sent', send }) }),
      onLeaseLost: () => this.#port.post({ kind: 'leaseLost', connection: number }),
    })
    this.#connections.set(number, connection)
    connection.start()
  }

  async #stop({ connection: number, logOut }: Extract<ToThread, { kind: 'stop' }>): Promise<void> {
    // The instance was deleted, so no other node connects its account.
    if (logOut) this.#revoked.delete(number)
    await this.#connections.get(number)?.stop({ logOut })
    this.#connections.delete(number)
    this.#revoked.delete(number)
    this.#port.post({ kind: 'stopped', connection: number })
  }

  #revoke(connection: number): void {
    if (this.#connections.has(connection)) this.#revoked.add(connection)
  }

  #networkOf(connection: number, network: ThreadNetwork): ConnectionNetwork {
    if (network.kind !== 'simulated') return network
    const linkBy = (qr: string, pairing: PairingCode | null) =>
      this.#calls.make({ kind: 'linkBy', connection, qr, pairing })
    return { kind: 'simulated', url: network.url, ...(network.linksItself && { linkBy }) }
  }

  #setValidity({ renewedAt, clockOffsetMs }: Validity): void {
    if (renewedAt !== null) this.#renewal.startedAt = renewedAt
    this.#clockOffsetMs = clockOffsetMs
  }
}

silenceSignalConsole()
passKeysAsObjects()
const data = workerData as ThreadData
setDefaultAutoSelectFamilyAttemptTimeout(data.addressTurnMs)
const thread = new Thread(data)
containLibraryErrors(thread.logger, error => {
  // Ends the thread, with this error for the main thread.
  process.removeAllListeners('uncaughtException')
  throw error
})
parentPort?.on('message', thread.take)
// Only after the start, so that a busy machine does not delay it.
lowerThreadPriority(LOWER_BY)
// Written now, because a killed process cannot write the compile cache when it ends.
flushCompileCache()
