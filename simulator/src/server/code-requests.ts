/** How long a typed code waits for a client that shows it. */
const CODE_TIMEOUT_MS = 2000

/** The clients that show a pairing code: the newest one for each phone number. */
export class CodeRequests<Client> {
  readonly #clients = new Map<string, Client>()
  readonly #waiting = new Set<() => void>()

  add(phone: string, client: Client): void {
    this.#clients.set(phone, client)
    for (const check of this.#waiting) check()
  }

  remove(phone: string, client: Client): void {
    if (this.#clients.get(phone) === client) this.#clients.delete(phone)
  }

  /** Resolves to null if no client shows a code for this number in time. */
  find(phone: string): Promise<Client | null> {
    return new Promise(resolve => {
      const finish = (client: Client | null) => {
        clearTimeout(timer)
        this.#waiting.delete(check)
        resolve(client)
      }
      const timer = setTimeout(() => finish(null), CODE_TIMEOUT_MS)
      const check = () => {
        const client = this.#clients.get(phone)
        if (client) finish(client)
      }
      this.#waiting.add(check)
      check()
    })
  }
}
