/** The entry point of the network's thread, started by `createSimulatorWorker`. */
import { parentPort, workerData } from 'node:worker_threads'
import { createSimulator } from '../simulator.ts'
import { type NetworkStorage, type Simulator, SimulatorError } from '../types.ts'
import type { CallMessage, ThreadMessage, ThreadOptions } from './thread-messages.ts'

const post = (message: ThreadMessage) => parentPort?.postMessage(message)

/** Forwards reads and writes to the calling thread. */
class RemoteStorage implements NetworkStorage {
  readonly #waiting = new Map<number, PromiseWithResolvers<ReadonlyMap<string, Uint8Array> | null>>()
  #lastId = 0

  async read(scope: string): Promise<ReadonlyMap<string, Uint8Array>> {
    return (await this.#request(id => ({ kind: 'read', id, scope }))) ?? new Map()
  }

  async write(...[scope, changes]: Parameters<NetworkStorage['write']>): Promise<void> {
    await this.#request(id => ({ kind: 'write', id, scope, changes }))
  }

  take(message: Extract<CallMessage, { kind: 'stored' | 'notStored' }>): void {
    const waiting = this.#waiting.get(message.id)
    this.#waiting.delete(message.id)
    if (message.kind === 'stored') waiting?.resolve(message.value)
    else waiting?.reject(new Error(message.message))
  }

  #request(question: (id: number) => ThreadMessage) {
    const id = ++this.#lastId
    const waiting = Promise.withResolvers<ReadonlyMap<string, Uint8Array> | null>()
    this.#waiting.set(id, waiting)
    post(question(id))
    return waiting.promise
  }
}

async function answer(
  simulator: Simulator,
  { id, method, args }: Extract<CallMessage, { kind: 'call' }>,
): Promise<void> {
  try {
    // The arguments come from the same method of the other thread's Simulator.
    const call = simulator[method] as (...given: unknown[]) => Promise<unknown>
    post({ kind: 'result', id, value: await call.apply(simulator, args) })
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    post({ kind: 'refused', id, code: error instanceof SimulatorError ? error.code : 'failed', message })
  }
}

async function main({ options, hasStorage }: ThreadOptions): Promise<void> {
  const storage = new RemoteStorage()
  const simulator = await createSimulator({
    ...options,
    ...(hasStorage && { storage }),
    log: line => post({ kind: 'log', line }),
  })
  parentPort?.on('message', (message: CallMessage) => {
    if (message.kind === 'call') void answer(simulator, message)
    else storage.take(message)
  })
  post({ kind: 'ready', url: simulator.url, media: simulator.media })
}

await main(workerData as ThreadOptions)
