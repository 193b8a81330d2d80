import { unavailable } from '../../../http/error-handler.ts'

/** A provider that hangs must not use up the open requests that callers without a key share. */
const MAX_OPEN = 50

/** Limits how many sign-ins wait for the provider. */
export class ProviderCalls {
  #open = 0

  /** @throws Refusal `service_unavailable` */
  async run<T>(call: () => Promise<T>): Promise<T> {
    if (this.#open >= MAX_OPEN) throw unavailable()
    this.#open += 1
    try {
      return await call()
    } finally {
      this.#open -= 1
    }
  }
}
