import { createSimulatorWorker, SimulatorError, type SimulatorWorker } from '@pombal/simulator/worker'
import type { Logger } from 'pino'
import type { PairingCode } from '../domain/connection/connection.ts'
import type { InstanceId } from '../domain/ids.ts'
import type { ContactMessage } from '../domain/incoming-message.ts'
import { Refusal } from '../domain/refusal.ts'
import type { Lease } from '../store/leases/leases.ts'
import type { Store } from '../store/store.ts'
import { askOwner, OrderTaker, type PhoneOrder, type PhoneReport } from './remote-phones.ts'

/** The pause before a restart of the thread. It doubles up to the maximum, until the thread has run for that long. */
const RESTART_AFTER_MS = 1_000
const MAX_RESTART_AFTER_MS = 60_000

const PHONE_OFF = 'The simulated phone is switched off: switch it on first.'

interface SandboxNetwork {
  url: string
  /** Lets the instance's phone enter the pairing code, whatever its number, or else scan the QR code. */
  linkBy(qr: string, pairing: PairingCode | null): Promise<void>
}

interface Phone {
  readonly lease: Lease
  readonly orders: OrderTaker
  readonly onMoved: () => void
  number: string
  on: boolean
}

/**
 * The simulated WhatsApp network for the sandbox instances that this node owns. It runs in a worker thread, which starts with
 * the first of them. Its state is stored under the instance's lease. Orders to a phone on another node go through the store.
 */
export class Sandbox {
  readonly #store: Pick<Store, 'sandbox' | 'phoneOrders' | 'hints'>
  readonly #logger: Logger
  readonly #onPort: (port: number) => void
  readonly #mediaFolder: string | undefined
  readonly #phones = new Map<InstanceId, Phone>()
  #worker: Promise<SimulatorWorker> | undefined
  /** Reused when the thread is restarted, so that connections can reconnect. 0: any free port. */
  #port = 0
  #mediaPort = 0
  #startedAt = 0
  #restartAfterMs = RESTART_AFTER_MS
  #closed = false

  /**
   * @param onPort called with each of the network's ports on loopback when it has started
   * @param mediaFolder keeps media files across restarts; created when needed
   */
  constructor(
    store: Pick<Store, 'sandbox' | 'phoneOrders' | 'hints'>,
    logger: Logger,
    onPort: (port: number) => void = () => undefined,
    mediaFolder?: string,
  ) {
    this.#store = store
    this.#logger = logger
    this.#onPort = onPort
    this.#mediaFolder = mediaFolder
  }

  /**
   * Adds this instance's simulated phone to the network, switched on. `leave` removes it.
   * @param onMoved called when the network has restarted on another port, so that its URL is no longer valid
   */
  async openNetwork(lease: Lease, onMoved: () => void): Promise<SandboxNetwork> {
    const { instanceId } = lease
    const worker = await this.#open()
    await this.leave(instanceId)
    const orders = this.#takeOrders(lease)
    const phone: Phone = { lease, orders, onMoved, number: '', on: true }
    this.#phones.set(instanceId, phone)
    try {
      phone.number = (await worker.openAccount(instanceId)).phone
    } catch (error) {
      await this.leave(instanceId)
      throw error
    }
    return {
      url: worker.url,
      linkBy: async (qr, pairing) => {
        const network = await this.#open()
        if (pairing) await network.enterPairingCode(pairing.code, pairing.phone, { account: instanceId, qr })
        else await network.scanQr(qr, instanceId)
      },
    }
  }

  /** Removes the phone from this node, so that another node can run it. */
  async leave(instanceId: InstanceId): Promise<void> {
    const phone = this.#phones.get(instanceId)
    if (!phone) return
    await phone.orders.end()
    await this.#worker?.then(worker => worker.closeAccount(instanceId)).catch(() => undefined)
    if (this.#phones.get(instanceId) === phone) this.#phones.delete(instanceId)
  }

  /** Call it when the store has erased the instance. */
  async forget(instanceId: InstanceId): Promise<void> {
    await this.#phones.get(instanceId)?.orders.end()
    this.#phones.delete(instanceId)
    await (await this.#worker)?.removeAccount(instanceId)
  }

  /**
   * Resolves with WhatsApp's ID of the message once the network has stored it.
   * @throws Refusal if this contact cannot write this message
   */
  async writeAs(instanceId: InstanceId, message: ContactMessage): Promise<{ id: string }> {
    const { id } = await this.#order(instanceId, { kind: 'write', message })
    return { id: id ?? '' }
  }

  async isPhoneOn(instanceId: InstanceId): Promise<boolean> {
    return (await this.#order(instanceId, { kind: 'look' })).on
  }

  /** While the phone is off, the network refuses the instance's connection, and contacts cannot write to it. */
  async switchPhone(instanceId: InstanceId, on: boolean): Promise<void> {
    await this.#order(instanceId, { kind: 'switch', on })
  }

  async close(): Promise<void> {
    this.#closed = true
    await Promise.all([...this.#phones.values()].map(({ orders }) => orders.end()))
    await this.#worker?.then(
      worker => worker.close(),
      () => undefined,
    )
  }

  #order(instanceId: InstanceId, order: PhoneOrder): Promise<PhoneReport> {
    const { phoneOrders: orders, hints } = this.#store
    const phone = this.#phones.get(instanceId)
    return phone ? this.#execute(phone, order) : askOwner({ orders, hints }, instanceId, order)
  }

  #takeOrders(lease: Lease): OrderTaker {
    const { phoneOrders: orders, hints } = this.#store
    const { instanceId } = lease
    return new OrderTaker({
      lease,
      orders,
      hints,
      execute: async order => {
        const phone = this.#phones.get(instanceId)
        if (!phone) throw new Refusal('service_unavailable')
        return this.#execute(phone, order)
      },
      onError: error => this.#logger.warn({ err: error, instanceId }, 'sandbox.order_failed'),
    })
  }

  async #execute(phone: Phone, order: PhoneOrder): Promise<PhoneReport> {
    try {
      if (order.kind === 'write') return await this.#write(phone, order.message)
      if (order.kind === 'switch') {
        const worker = await this.#open()
        await worker.switchPhone(phone.lease.instanceId, order.on)
        phone.on = order.on
      }
      return { on: phone.on }
    } catch (error) {
      throw asRefusal(error)
    }
  }

  async #write(phone: Phone, message: ContactMessage): Promise<PhoneReport> {
    if (!phone.on) throw new Refusal('instance_not_connected', PHONE_OFF)
    const worker = await this.#open()
    const to = phone.number || (await worker.openAccount(phone.lease.instanceId)).phone
    const { from, text, group, name } = message
    try {
      return { on: true, ...(await worker.writeAs({ from, to, text, ...(group && { group }), ...(name && { name }) })) }
    } catch (error) {
      if (error instanceof SimulatorError && error.code === 'failed')
        this.#logger.warn({ err: error, instanceId: phone.lease.instanceId }, 'sandbox.write_failed')
      throw error
    }
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
    const { sandbox } = this.#store
    const storage = {
      read: (instanceId: InstanceId) => sandbox.read(instanceId),
      write: async (instanceId: InstanceId, changes: Parameters<typeof sandbox.write>[1]) => {
        const phone = this.#phones.get(instanceId)
        // The instance may have been erased meanwhile.
        if (phone) await sandbox.write(phone.lease, changes)
      },
    }
    const worker = await createSimulatorWorker({
      storage,
      port: this.#port,
      mediaPort: this.#mediaPort,
      ...(this.#mediaFolder && { mediaFolder: this.#mediaFolder }),
    }).catch(error => {
      if (error instanceof SimulatorError && error.code === 'port_in_use') this.#port = this.#mediaPort = 0
      throw error
    })
    const [port, mediaPort] = [worker.url, `https://${worker.media.hosts[0]}`].map(url => Number(new URL(url).port))
    if (port !== this.#port) {
      this.#onPort(port!)
      for (const { onMoved } of this.#phones.values()) onMoved()
    }
    if (mediaPort !== this.#mediaPort) this.#onPort(mediaPort!)
    this.#port = port!
    this.#mediaPort = mediaPort!
    try {
      for (const [instanceId, { on }] of this.#phones) await worker.switchPhone(instanceId, on)
    } catch (error) {
      // It would keep the port.
      await worker.terminate()
      throw error
    }
    this.#startedAt = performance.now()
    worker.onExit(error => this.#restart(error))
    return worker
  }

  /** The thread died because of a bug. It restarts with everything that it had acknowledged, on the same port if that is free. */
  #restart(error: SimulatorError): void {
    this.#worker = undefined
    if (this.#closed) return
    this.#logger.error({ err: error }, 'sandbox.crashed')
    if (performance.now() - this.#startedAt >= MAX_RESTART_AFTER_MS) this.#restartAfterMs = RESTART_AFTER_MS
    this.#openLater()
  }

  #openLater(): void {
    setTimeout(() => {
      if (this.#closed) return
      this.#open().catch(error => {
        this.#logger.error({ err: error }, 'sandbox.start_failed')
        this.#openLater()
      })
    }, this.#restartAfterMs).unref()
    this.#restartAfterMs = Math.min(2 * this.#restartAfterMs, MAX_RESTART_AFTER_MS)
  }
}

function asRefusal(error: unknown): unknown {
  if (!(error instanceof SimulatorError)) return error
  if (error.code === 'invalid_argument' || error.code === 'not_a_member')
    return new Refusal('invalid_request', error.message)
  // Also while another node takes the instance over: its simulator may not know the account yet, and cannot write its state.
  return new Refusal('service_unavailable')
}

/** The sandbox as the API calls it. Without a sandbox there are no simulated phones, and no contact can write. */
export function sandboxCalls(sandbox: Sandbox | null) {
  return {
    enabled: sandbox !== null,
    writeAs: (...message: Parameters<Sandbox['writeAs']>) => {
      if (!sandbox) throw new Refusal('sandbox_disabled')
      return sandbox.writeAs(...message)
    },
    isPhoneOn: async (instanceId: InstanceId) => sandbox?.isPhoneOn(instanceId) ?? false,
    switchPhone: async (instanceId: InstanceId, on: boolean) => sandbox?.switchPhone(instanceId, on),
  }
}
