export const LINKING_FAILURES = [
  'passkey',
  'refresh',
  'refuse_version',
  'refuse_device',
  'refuse_code',
  'device_limit',
  'phone_offline',
  'bad_signature',
  'unauthorized',
] as const
export type LinkingFailure = (typeof LINKING_FAILURES)[number]

/** The way in which the next attempts to link a client fail. At most one is set. */
export class LinkingFailures<How extends string = LinkingFailure> {
  #how: How | null = null
  #left = 0

  set(how: How, count: number): void {
    this.#how = how
    this.#left = count
  }

  clear(): void {
    this.#left = 0
  }

  /** Counts one attempt and returns true if it must fail in this way. */
  take(how: How): boolean {
    if (this.#how !== how || this.#left <= 0) return false
    this.#left--
    return true
  }
}
