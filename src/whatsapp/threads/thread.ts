/** The entry point of a WhatsApp thread, started by `WhatsappThread`. */
import { flushCompileCache } from 'node:module'
import { parentPort, workerData } from 'node:worker_threads'
import { pino } from 'pino'
import { EventLoopBudget } from '../../kit/event-loop-budget.ts'
import { Turns } from '../../kit/turns.ts'
import { openFiles } from '../../media/open-files.ts'
import { machineClock } from '../../store/clock.ts'
import { Renewal } from '../../store/leases/renewal.ts'
import { containLibraryErrors } from '../baileys/library-errors.ts'
import { passKeysAsObjects } from '../baileys/signal/keys-as-objects.ts'
import { silenceSignalConsole } from '../baileys/signal/quiet-libsignal.ts'
import { Connection } from '../connection/connection.ts'
import type { ConnectionFiles } from '../connection/connection-files.ts'
import { ConnectionPacing } from '../connection/connection-pacing.ts'
import type { ConnectionNetwork } from '../connection/link-manager.ts'
import {
  type FromThread,
  Outbox,
  type ThreadData,
  type ThreadNetwork,
  type ToThread,
  type Validity,
} from './messages.ts'
import { Calls, ForwardedHints, remoteStore } from './remote-store.ts'

/** Files that the connections of a thread fetch from WhatsApp at once. */
const FETCHES_AT_ONCE = 12

/** The connections of one thread. */
class Thread {
  readonly #settings: ThreadData['settings']
  readonly #outbox = new Outbox<FromThread>(
    messages => parentPort?.postMessage(messages),
    (message, error) => this.#calls.failUndeliverable(message, error),
  )
  readonly #calls = new Calls(message => this.#outbox.post(message))
  readonly #hints: ForwardedHints
  readonly #store
  readonly #files: ConnectionFiles | null
  readonly #renewal = new Renewal()
  readonly #shared
  readonly #connections = new Map<number, Connection>()
  /** Connections that lost their lease. */
  readonly #revoked = new Set<number>()
  readonly logger
  #clockOffsetMs = 0

  constructor({ settings, media, logLevel, hintsShared, threads, validity }: ThreadData) {
    this.#settings = settings
    this.#shared = { eventLoopBudget: new EventLoopBudget(), pacing: new ConnectionPacing(undefined, threads) }
    this.#hints = new ForwardedHints(hintsShared)
    this.#store = remoteStore(this.#calls, this.#hints)
    this.#files = media && { ...openFiles(media, this.#store.media), turns: new Turns(FETCHES_AT_ONCE) }
    this.logger = pino({ level: logLevel }, { write: line => this.#outbox.post({ kind: 'log', line }) })
    this.#setValidity(validity)
  }

  take(message: ToThread): void {
    if (message.kind === 'result') this.#calls.resolve(message.call, message.value)
    else if (message.kind === 'error') this.#calls.reject(message.call, message.error)
    else if (message.kind === 'hint') this.#hints.take(message)
    else if (message.kind === 'start') this.#start(message)
    else if (message.kind === 'stop') void this.#stop(message)
    else if (message.kind === 'revoke') this.#revoke(message.connection)
    else if (message.kind === 'validity') this.#setValidity(message.validity)
    else this.#outbox.post({ kind: 'heartbeat' })
  }

  #start({ connection: number, lease, network }: Extract<ToThread, { kind: 'start' }>): void {
    const connection = new Connection({
      ...this.#shared,
      lease,
      store: this.#store,
      network: this.#networkOf(number, network),
      settings: this.#settings,
      files: this.#files,
      mayAct: () => !this.#revoked.has(number) && this.#mayAct(),
      logger: this.logger,
      now: () => Math.round(machineClock.steady() + this.#clockOffsetMs),
      onLinking: isLinking => this.#outbox.post({ kind: 'linking', connection: number, isLinking }),
      onLeaseLost: () => this.#outbox.post({ kind: 'leaseLost', connection: number }),
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
    this.#outbox.post({ kind: 'stopped', connection: number })
  }

  #revoke(connection: number): void {
    if (this.#connections.has(connection)) this.#revoked.add(connection)
  }

  #networkOf(connection: number, network: ThreadNetwork): ConnectionNetwork {
    if (network.kind !== 'simulated') return network
    const linkBy = (qr: string) => this.#calls.make(call => ({ kind: 'scan', call, connection, qr }))
    return { kind: 'simulated', url: network.url, ...(network.scans && { linkBy }) }
  }

  #setValidity({ renewedAt, clockOffsetMs }: Validity): void {
    if (renewedAt !== null) this.#renewal.renewed(renewedAt)
    this.#clockOffsetMs = clockOffsetMs
  }

  /** Asks for a renewal of the leases if the last one that this thread knows of is too old. */
  #mayAct(): boolean {
    if (this.#renewal.isValid) return true
    this.#outbox.post({ kind: 'renew' })
    return false
  }
}

silenceSignalConsole()
passKeysAsObjects()
const thread = new Thread(workerData as ThreadData)
containLibraryErrors(thread.logger, error => {
  // Ends the thread, with this error for the main thread.
  process.removeAllListeners('uncaughtException')
  throw error
})
parentPort?.on('message', (messages: ToThread[]) => {
  for (const message of messages) thread.take(message)
})
// Written now, because a killed process cannot write the compile cache when it ends.
flushCompileCache()
