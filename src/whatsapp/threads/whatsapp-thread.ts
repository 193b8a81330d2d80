import { Worker } from 'node:worker_threads'
import type { DestinationStream } from 'pino'
import type { PairingCode } from '../../domain/connection/connection.ts'
import type { InstanceId } from '../../domain/ids.ts'
import type { SendTrace } from '../../domain/trace-context.ts'
import { waitAtMost } from '../../kit/deadline.ts'
import type { Hints } from '../../store/hints.ts'
import type { Lease } from '../../store/leases/leases.ts'
import type { ConnectionNetwork } from '../connection/connection-settings.ts'
import {
  BatchedPort,
  FORWARDED_HINTS,
  type FromThread,
  type ThreadData,
  type ThreadNetwork,
  type ThreadStore,
  type ToThread,
  type Validity,
} from './messages.ts'
import { toPlain } from './plain-errors.ts'

const HEARTBEAT_EVERY_MS = 1_000
/** A busy thread answers late. A thread that misses more than this many heartbeats in a row counts as hung. */
const MISSED_HEARTBEATS = 20
/** The same while it loads its code, which is slow on a busy machine. */
const MISSED_WHILE_LOADING = 120
/** Longer than a connection takes to stop. A thread that takes longer hangs, and must not keep the service from stopping. */
const STOP_WITHIN_MS = 4_000
/** The same with a logout, which waits for WhatsApp. */
const LOGOUT_WITHIN_MS = 12_000

export interface ThreadConnectionOptions {
  lease: Lease
  network: ConnectionNetwork
  /** A write was refused by the fence. */
  onLeaseLost(): void
  /** The thread died, and with it the socket. */
  onCrashed(): void
}

export interface WhatsappThreadOptions {
  data: ThreadData
  store: ThreadStore & { hints: Hints }
  /** Where the lines of the thread's log are written. */
  logTo: DestinationStream
  /** An attempt to send a message has ended. Undefined: traces are off. */
  onSent?: ((send: SendTrace) => void) | undefined
  /** The memory that the thread may use for JavaScript objects, in MiB. */
  heapMib: number
  /** The thread does not know of a recent renewal of the leases. */
  onRenewalNeeded(): void
  onLoaded(): void
  /** Called once, after the thread has ended other than by `close`. @param suspects the instances that may have caused it */
  onDied(error: Error, suspects: readonly InstanceId[]): void
}

/** One WhatsApp thread, seen from the main thread. */
export class WhatsappThread {
  readonly #options: WhatsappThreadOptions
  readonly #worker: Worker
  readonly #port: BatchedPort<ToThread>
  readonly #connections = new Map<number, ThreadConnection>()
  readonly #heartbeat: NodeJS.Timeout
  /** Counted by a timer, so that a paused machine misses none. */
  #missedHeartbeats = 0
  /** Whether the thread has loaded its code. */
  hasLoaded = false
  readonly #loaded = Promise.withResolvers<void>()
  #lastConnection = 0
  #terminating = false
  /** Known only if the thread was ended because of them. */
  #suspects: readonly InstanceId[] | undefined
  #error: Error | null = null
  #closing = false

  constructor(options: WhatsappThreadOptions) {
    this.#options = options
    this.#worker = new Worker(new URL('./thread.ts', import.meta.url), {
      workerData: options.data,
      name: 'whatsapp',
      resourceLimits: { maxOldGenerationSizeMb: options.heapMib },
    })
    this.#port = new BatchedPort(this.#worker, (message, error) => this.#failUndeliverable(message, error))
    this.#worker.on('message', this.#take)
    this.#worker.on('error', error => {
      this.#error = error as Error
    })
    this.#worker.once('exit', code => this.#end(code))
    this.#heartbeat = setInterval(() => this.#beat(), HEARTBEAT_EVERY_MS)
    this.#port.post({ kind: 'heartbeat' })
  }

  get size(): number {
    return this.#connections.size
  }

  /** False if the thread answers late. It may be about to die. */
  get isPrompt(): boolean {
    return !this.#terminating && (!this.hasLoaded || this.#missedHeartbeats <= 1)
  }

  connect(options: ThreadConnectionOptions): ThreadConnection {
    const number = ++this.#lastConnection
    const connection = new ThreadConnection(options, {
      number,
      port: this.#port,
      hints: this.#options.store.hints,
      loaded: this.#loaded.promise,
      killThread: () => this.#kill('A connection did not stop.', [options.lease.instanceId]),
    })
    this.#connections.set(number, connection)
    void connection.ended.then(() => this.#connections.delete(number))
    return connection
  }

  setValidity(validity: Validity): void {
    this.#port.post({ kind: 'validity', validity })
  }

  /** Ends the thread. Its connections must be stopped. */
  async close(): Promise<void> {
    this.#closing = true
    clearInterval(this.#heartbeat)
    await this.#worker.terminate()
  }

  #beat(): void {
    this.#missedHeartbeats += 1
    if (this.#missedHeartbeats > (this.hasLoaded ? MISSED_HEARTBEATS : MISSED_WHILE_LOADING))
      void this.#kill('The thread did not answer.')
    else if (this.hasLoaded) this.#port.post({ kind: 'heartbeat' })
  }

  async #kill(reason: string, suspects?: readonly InstanceId[]): Promise<void> {
    this.#terminating = true
    this.#error ??= new Error(reason)
    this.#suspects ??= suspects
    await this.#worker.terminate()
  }

  #noteHeartbeat(): void {
    if (!this.hasLoaded) this.#options.onLoaded()
    this.hasLoaded = true
    this.#loaded.resolve()
    this.#missedHeartbeats = 0
  }

  readonly #take = (messages: readonly FromThread[]): void => {
    for (const message of messages) {
      if (message.kind === 'call' || message.kind === 'linkBy') void this.#answer(message)
      else if (message.kind === 'log') this.#options.logTo.write(message.line)
      else if (message.kind === 'sent') this.#options.onSent?.(message.send)
      else if (message.kind === 'heartbeat') this.#noteHeartbeat()
      else if (message.kind === 'renew') this.#options.onRenewalNeeded()
      else this.#connections.get(message.connection)?.take(message)
    }
  }

  async #answer(message: Extract<FromThread, { call: number }>): Promise<void> {
    const { call } = message
    try {
      let value: unknown
      if (message.kind === 'call') {
        const part = this.#options.store[message.subject]
        // The thread calls each method as its interface states.
        const method = part[message.method as keyof typeof part] as (...args: unknown[]) => Promise<unknown>
        value = await method.apply(part, message.args)
      } else await this.#connections.get(message.connection)?.linkBy(message.qr, message.pairing)
      this.#port.post({ kind: 'result', call, value })
    } catch (error) {
      this.#port.post({ kind: 'error', call, error: toPlain(error) })
    }
  }

  /** Only the result of a call can be undeliverable, because the other messages are made here. */
  #failUndeliverable(message: ToThread, error: unknown): void {
    if (message.kind !== 'result') throw error
    this.#port.post({ kind: 'error', call: message.call, error: toPlain(error) })
  }

  #end(code: number): void {
    clearInterval(this.#heartbeat)
    const connections = [...this.#connections.values()]
    const error = this.#error ?? new Error(`The thread ended with code ${code}.`)
    const suspects = this.#suspects ?? connections.map(({ instanceId }) => instanceId)
    if (!this.#closing) this.#options.onDied(error, suspects)
    for (const connection of connections) connection.crash()
  }
}

interface ConnectionThread {
  /** The number of the connection. */
  number: number
  port: BatchedPort<ToThread>
  hints: Hints
  /** Resolves when the thread has loaded its code. */
  loaded: Promise<void>
  killThread(): Promise<void>
}

/** The connection of one instance, which runs in a thread. */
export class ThreadConnection {
  readonly #options: ThreadConnectionOptions
  readonly #thread: ConnectionThread
  readonly #ended = Promise.withResolvers<void>()
  #unsubscribe: (() => void)[] = []
  #started = false
  #stopping = false
  hasEnded = false
  isLinking = false

  constructor(options: ThreadConnectionOptions, thread: ConnectionThread) {
    this.#options = options
    this.#thread = thread
  }

  get instanceId(): InstanceId {
    return this.#options.lease.instanceId
  }

  /** Resolves when the connection has stopped, or its thread has died. */
  get ended(): Promise<void> {
    return this.#ended.promise
  }

  start(): void {
    const { port, hints, loaded } = this.#thread
    const { instanceId } = this
    if (this.hasEnded) return
    this.#unsubscribe = FORWARDED_HINTS.map(topic =>
      hints.on(topic, (_, origin, about) => port.post({ kind: 'hint', topic, instanceId, origin, about }), instanceId),
    )
    // Until then the thread could not read a `stop` either.
    void loaded.then(() => this.#postStart())
  }

  #postStart(): void {
    if (this.hasEnded) return
    this.#started = true
    const { lease, network } = this.#options
    this.#thread.port.post({ kind: 'start', connection: this.#thread.number, lease, network: plain(network) })
  }

  /** Call it before the leases become valid again. */
  revoke(): void {
    if (this.#started) this.#thread.port.post({ kind: 'revoke', connection: this.#thread.number })
    else this.#end()
  }

  async stop({ logOut = false }: { logOut?: boolean } = {}): Promise<void> {
    this.#stopping = true
    this.#stopListening()
    if (!this.#started) this.#end()
    if (this.hasEnded) return
    const { number, port, killThread } = this.#thread
    port.post({ kind: 'stop', connection: number, logOut })
    await waitAtMost(logOut ? LOGOUT_WITHIN_MS : STOP_WITHIN_MS, this.ended)
    // The connection must not act after its lease is released.
    if (!this.hasEnded) await killThread()
  }

  async linkBy(qr: string, pairing: PairingCode | null): Promise<void> {
    const { network } = this.#options
    if (network.kind === 'simulated') await network.linkBy?.(qr, pairing)
  }

  take(message: Extract<FromThread, { kind: 'linking' | 'leaseLost' | 'stopped' }>): void {
    if (message.kind === 'linking') this.isLinking = message.isLinking
    else if (message.kind === 'leaseLost') this.#options.onLeaseLost()
    else this.#end()
  }

  crash(): void {
    this.#end()
    if (!this.#stopping) this.#options.onCrashed()
  }

  #end(): void {
    this.hasEnded = true
    this.#stopListening()
    this.#ended.resolve()
  }

  /** While it listens, this process counts as the owner of the instance and does not send its hints to other nodes. */
  #stopListening(): void {
    for (const unsubscribe of this.#unsubscribe.splice(0)) unsubscribe()
  }
}

function plain(network: ConnectionNetwork): ThreadNetwork {
  if (network.kind !== 'simulated') return network
  return { kind: 'simulated', url: network.url, linksItself: network.linkBy !== undefined }
}
