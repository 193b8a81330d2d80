/** How long a typed code waits for a client that shows it. */
const CODE_TIMEOUT_MS = 2000

/** The clients that show a pairing code, with the phone number that they requested it for, in the order of their requests. */
export class CodeRequests<Client> {
  readonly #phones = new Map<Client, string>()
  readonly #waiting = new Set<() => void>()

  add(phone: string, client: Client): void {
    this.#phones.delete(client)
    this.#phones.set(client, phone)
    for (const check of this.#waiting) check()
  }

  remove(client: Client): void {
    this.#phones.delete(client)
  }

  /**
   * Resolves to the newest client, or to null if no client shows a code for this number in time.
   * @param wanted the only client to accept
   */
  find(phone: string, wanted: Client | null = null): Promise<Client | null> {
    return new Promise(resolve => {
      const finish = (client: Client | null) => {
        clearTimeout(timer)
        this.#waiting.delete(check)
        resolve(client)
      }
      const timer = setTimeout(() => finish(null), CODE_TIMEOUT_MS)
      const check = () => {
        const requested = [...this.#phones].filter(([, number]) => number === phone).map(([client]) => client)
        const client = requested.findLast(candidate => wanted === null || candidate === wanted)
        if (client) finish(client)
      }
      this.#waiting.add(check)
      check()
    })
  }
}
