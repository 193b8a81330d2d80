import type { InstanceId } from '../domain/ids.ts'
import type { SigningSecrets } from '../domain/instance.ts'
import type { Instances } from '../store/instances/instances.ts'
import type { Clock } from './clock.ts'

/** The longest delay until a rotation takes effect if its hint is lost. */
const FRESH_MS = 1_000

/** The signing secrets of one instance, at most 1 s old. */
export class SigningSecretsCache {
  readonly #instanceId: InstanceId
  readonly #instances: Pick<Instances, 'findSigningSecrets'>
  readonly #clock: Clock
  #reading: Promise<SigningSecrets> | null = null
  #freshUntil = Number.NEGATIVE_INFINITY

  constructor(instanceId: InstanceId, instances: Pick<Instances, 'findSigningSecrets'>, clock: Clock) {
    this.#instanceId = instanceId
    this.#instances = instances
    this.#clock = clock
  }

  get(): Promise<SigningSecrets> {
    if (this.#reading && this.#clock.steady() < this.#freshUntil) return this.#reading
    const reading = this.#read()
    this.#reading = reading
    this.#freshUntil = this.#clock.steady() + FRESH_MS
    reading.catch(() => {
      if (this.#reading === reading) this.#reading = null
    })
    return reading
  }

  invalidate(): void {
    this.#reading = null
  }

  async #read(): Promise<SigningSecrets> {
    const secrets = await this.#instances.findSigningSecrets(this.#instanceId, this.#clock.now())
    if (secrets === null) throw new Error(`Instance ${this.#instanceId} has no signing secrets.`)
    return secrets
  }
}
