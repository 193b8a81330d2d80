import { Worker } from 'node:worker_threads'
import type { GroupChange, GroupState } from '../contacts/group-types.ts'
import type { Order, OrderResult } from '../scenario/order.ts'
import type { ScenarioState } from '../scenario/scenario.ts'
import {
  type AccountInfo,
  type Call,
  type CodeReader,
  type ContactCall,
  type ContactMessage,
  type ContactPresence,
  type ContactProfile,
  type ContactTyping,
  type MediaAccess,
  type NetworkStorage,
  type OwnerMessage,
  type PhonePresence,
  type ReceivedMessage,
  type SavedContact,
  type ShownProfile,
  type Simulator,
  SimulatorError,
  type SimulatorErrorCode,
  type SimulatorOptions,
} from '../types.ts'
import type { CallMessage, SimulatorMethod, ThreadMessage, ThreadOptions } from './thread-messages.ts'

export { SimulatorError }

/** A network in its own thread. When the thread dies, every call rejects with `crashed`. */
export interface SimulatorWorker extends Simulator {
  /**
   * Calls the listener once, when the thread has ended other than by `close` or `terminate`. If the thread has
   * already ended, calls it immediately.
   */
  onExit(listener: (error: SimulatorError) => void): void
  /** Ends the thread abruptly, as a crash would. */
  terminate(): Promise<void>
}

/** Starts a network in a worker thread; `storage` and `log` are called in the calling thread. */
export function createSimulatorWorker(options: SimulatorOptions = {}): Promise<SimulatorWorker> {
  const { storage, log, ...rest } = options
  const workerData: ThreadOptions = { options: rest, hasStorage: storage !== undefined }
  const worker = new Worker(new URL('./thread.ts', import.meta.url), { workerData, execArgv: [], stdin: false })
  return new Promise((resolve, reject) => {
    const simulator = new ThreadSimulator(worker, storage ?? null, log ?? (() => undefined), () => resolve(simulator))
    simulator.onExit(reject)
  })
}

interface Waiting {
  resolve: (value: unknown) => void
  reject: (error: Error) => void
}

class ThreadSimulator implements SimulatorWorker {
  url = ''
  media: MediaAccess = { hosts: [], certificate: '' }
  readonly #worker: Worker
  readonly #storage: NetworkStorage | null
  readonly #log: (line: string) => void
  readonly #ready: () => void
  readonly #calls = new Map<number, Waiting>()
  readonly #exitListeners: ((error: SimulatorError) => void)[] = []
  #lastCall = 0
  #ended: SimulatorError | null = null
  #expected = false

  constructor(worker: Worker, storage: NetworkStorage | null, log: (line: string) => void, ready: () => void) {
    this.#worker = worker
    this.#storage = storage
    this.#log = log
    this.#ready = ready
    worker.on('message', (message: ThreadMessage) => this.#take(message))
    worker.on('error', (error: NodeJS.ErrnoException) => {
      const code = error.code === 'EADDRINUSE' ? 'port_in_use' : 'crashed'
      this.#end(`the simulator's thread crashed: ${error.message}`, code)
    })
    worker.on('exit', code => this.#end(`the simulator's thread ended with code ${code}`))
  }

  openAccount(key: string) {
    return this.#call<{ phone: string }>('openAccount', key)
  }

  closeAccount(key: string) {
    return this.#call<void>('closeAccount', key)
  }

  switchPhone(key: string, on: boolean) {
    return this.#call<void>('switchPhone', key, on)
  }

  removeAccount(key: string) {
    return this.#call<void>('removeAccount', key)
  }

  scanQr(qr: string, account?: string, name?: string) {
    return this.#call<{ phone: string }>('scanQr', qr, account, name)
  }

  enterPairingCode(code: string, phone: string, by?: CodeReader) {
    return this.#call<{ phone: string }>('enterPairingCode', code, phone, by)
  }

  unlink(phone: string) {
    return this.#call<void>('unlink', phone)
  }

  writeAs(message: ContactMessage) {
    return this.#call<{ id: string }>('writeAs', message)
  }

  writeAsOwner(message: OwnerMessage) {
    return this.#call<{ id: string }>('writeAsOwner', message)
  }

  saveContacts(phone: string, contacts: readonly SavedContact[]) {
    return this.#call<void>('saveContacts', phone, contacts)
  }

  joinGroup(group: string, numbers: readonly string[]) {
    return this.#call<void>('joinGroup', group, numbers)
  }

  createGroup(by: string, subject: string, members: readonly string[]) {
    return this.#call<{ group: string }>('createGroup', by, subject, members)
  }

  changeGroup(group: string, change: GroupChange) {
    return this.#call<GroupState>('changeGroup', group, change)
  }

  group(group: string, account?: string) {
    return this.#call<GroupState>('group', group, account)
  }

  typeAs(typing: ContactTyping) {
    return this.#call<void>('typeAs', typing)
  }

  setPresence(presence: ContactPresence) {
    return this.#call<void>('setPresence', presence)
  }

  callAs(call: ContactCall) {
    return this.#call<{ id: string }>('callAs', call)
  }

  endCall(id: string) {
    return this.#call<void>('endCall', id)
  }

  calls(number: string) {
    return this.#call<readonly Call[]>('calls', number)
  }

  setProfile(profile: ContactProfile) {
    return this.#call<void>('setProfile', profile)
  }

  profile(number: string, viewer?: string) {
    return this.#call<ShownProfile>('profile', number, viewer)
  }

  presence(number: string) {
    return this.#call<PhonePresence>('presence', number)
  }

  inbox(number: string, whole?: boolean) {
    return this.#call<readonly ReceivedMessage[]>('inbox', number, whole)
  }

  listAccounts() {
    return this.#call<readonly AccountInfo[]>('listAccounts')
  }

  misbehave(order: Order) {
    return this.#call<OrderResult>('misbehave', order)
  }

  scenario() {
    return this.#call<ScenarioState>('scenario')
  }

  async close(): Promise<void> {
    if (this.#ended) return
    await this.#call<void>('close')
    await this.terminate()
  }

  async terminate(): Promise<void> {
    this.#expected = true
    await this.#worker.terminate()
  }

  onExit(listener: (error: SimulatorError) => void): void {
    if (this.#ended && !this.#expected) listener(this.#ended)
    else this.#exitListeners.push(listener)
  }

  #call<T>(method: SimulatorMethod, ...args: unknown[]): Promise<T> {
    if (this.#ended) return Promise.reject(this.#ended)
    const id = ++this.#lastCall
    return new Promise<T>((resolve, reject) => {
      // The thread answers each method as the interface states.
      this.#calls.set(id, { resolve: value => resolve(value as T), reject })
      this.#post({ kind: 'call', id, method, args })
    })
  }

  #take(message: ThreadMessage): void {
    if (message.kind === 'log') this.#log(message.line)
    else if (message.kind === 'result') this.#settle(message.id, waiting => waiting.resolve(message.value))
    else if (message.kind === 'refused') {
      this.#settle(message.id, waiting => waiting.reject(new SimulatorError(message.code, message.message)))
    } else if (message.kind === 'ready') {
      this.url = message.url
      this.media = message.media
      this.#ready()
    } else void this.#store(message)
  }

  #settle(id: number, finish: (waiting: Waiting) => void): void {
    const waiting = this.#calls.get(id)
    this.#calls.delete(id)
    if (waiting) finish(waiting)
  }

  async #store(message: Extract<ThreadMessage, { kind: 'read' | 'write' }>): Promise<void> {
    try {
      const value =
        message.kind === 'read'
          ? await this.#storage?.read(message.scope)
          : await this.#storage?.write(message.scope, message.changes)
      this.#post({ kind: 'stored', id: message.id, value: value ?? null })
    } catch (error) {
      this.#post({ kind: 'notStored', id: message.id, message: error instanceof Error ? error.message : String(error) })
    }
  }

  #post(message: CallMessage): void {
    this.#worker.postMessage(message)
  }

  #end(reason: string, code: SimulatorErrorCode = 'crashed'): void {
    if (this.#ended) return
    this.#ended = this.#expected
      ? new SimulatorError('closed', 'the simulator is closed')
      : new SimulatorError(code, reason)
    for (const { reject } of this.#calls.values()) reject(this.#ended)
    this.#calls.clear()
    if (!this.#expected) for (const listener of this.#exitListeners) listener(this.#ended)
  }
}
