import { createSimulatorWorker, SimulatorError, type SimulatorWorker } from '@pombal/simulator/worker'
import type { Logger } from 'pino'
import type { InstanceId } from './domain/ids.ts'
import { Refusal } from './domain/refusal.ts'
import type { SandboxStorage } from './store/store.ts'

const RESTART_AFTER_MS = 1_000

/** What a simulated contact writes to a sandbox instance. */
export interface SandboxMessage {
  from: string
  text: string
  group?: string | undefined
  name?: string | undefined
}

const PHONE_OFF = 'The simulated phone is switched off: switch it on first.'

/**
 * The simulated WhatsApp network that sandbox instances are linked to. It starts, in a thread of its own, with the
 * first of them, and keeps what it must remember in the store.
 */
export class Sandbox {
  readonly #storage: SandboxStorage
  readonly #logger: Logger
  readonly #phones = new Map<InstanceId, string>()
  /** Whose phone somebody switched off. */
  readonly #off = new Set<InstanceId>()
  #worker: Promise<SimulatorWorker> | undefined
  /** Kept when the thread has to be started again, so that the connections find it where it was. */
  #port = 0
  #closed = false

  constructor(storage: SandboxStorage, logger: Logger) {
    this.#storage = storage
    this.#logger = logger
  }

  /** Where the network listens, on loopback; 0 while it does not. */
  get port(): number {
    return this.#port
  }

  /** The network with this instance's simulated phone in it. */
  async openNetwork(instanceId: InstanceId): Promise<{ url: string; scanQr(qr: string): Promise<void> }> {
    const worker = await this.#open()
    this.#off.delete(instanceId)
    this.#phones.set(instanceId, (await worker.openAccount(instanceId)).phone)
    return {
      url: worker.url,
      scanQr: async qr => {
        await (await this.#open()).scanQr(qr, instanceId)
      },
    }
  }

  /**
   * Resolves with WhatsApp's id of the message once the network has it for good.
   * @throws Refusal when such a contact cannot write such a message
   */
  async writeAs(instanceId: InstanceId, message: SandboxMessage): Promise<{ id: string }> {
    if (this.#off.has(instanceId)) throw new Refusal('instance_not_connected', PHONE_OFF)
    const worker = await this.#open()
    const to = this.#phones.get(instanceId) ?? (await worker.openAccount(instanceId)).phone
    const { from, text, group, name } = message
    try {
      return await worker.writeAs({ from, to, text, ...(group && { group }), ...(name && { name }) })
    } catch (error) {
      throw asRefusal(error)
    }
  }

  isPhoneOn(instanceId: InstanceId): boolean {
    return !this.#off.has(instanceId)
  }

  /** While its phone is off, the network turns the instance away, and contacts cannot write to it. */
  async switchPhone(instanceId: InstanceId, on: boolean): Promise<void> {
    const worker = await this.#open()
    if (on) {
      this.#off.delete(instanceId)
      await worker.openAccount(instanceId)
    } else {
      this.#off.add(instanceId)
      await worker.closeAccount(instanceId)
    }
  }

  async forget(instanceId: InstanceId): Promise<void> {
    this.#phones.delete(instanceId)
    this.#off.delete(instanceId)
    if (this.#worker) await (await this.#worker).removeAccount(instanceId)
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#worker?.then(
      worker => worker.close(),
      () => undefined,
    )
  }

  #open(): Promise<SimulatorWorker> {
    if (this.#closed) throw new Refusal('service_unavailable')
    this.#worker ??= this.#start().catch(error => {
      this.#worker = undefined
      throw error
    })
    return this.#worker
  }

  async #start(): Promise<SimulatorWorker> {
    const worker = await createSimulatorWorker({ storage: this.#storage, port: this.#port })
    this.#port = Number(new URL(worker.url).port)
    worker.onExit(error => this.#restart(error))
    for (const instanceId of this.#phones.keys()) {
      if (!this.#off.has(instanceId)) await worker.openAccount(instanceId)
    }
    return worker
  }

  /** The network's thread died: a bug. It is started again where it was, and remembers what it had acknowledged. */
  #restart(error: SimulatorError): void {
    this.#worker = undefined
    if (this.#closed) return
    this.#logger.error({ err: error }, 'sandbox.crashed')
    setTimeout(() => {
      if (!this.#closed) this.#open().catch(again => this.#logger.error({ err: again }, 'sandbox.start_failed'))
    }, RESTART_AFTER_MS).unref()
  }
}

function asRefusal(error: unknown): unknown {
  if (!(error instanceof SimulatorError)) return error
  if (error.code === 'invalid_argument' || error.code === 'not_a_member')
    return new Refusal('invalid_request', error.message)
  if (error.code === 'crashed' || error.code === 'closed') return new Refusal('service_unavailable')
  return error
}
