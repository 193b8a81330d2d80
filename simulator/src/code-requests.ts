/** A phone's owner may type a code before the network has heard of it: it waits this long. */
const PATIENCE_MS = 2000

/** The clients that show a pairing code, by the phone number they ask to be linked to; the newest per number. */
export class CodeRequests<Client> {
  readonly #clients = new Map<string, Client>()
  readonly #waiting = new Set<() => void>()

  add(phone: string, client: Client): void {
    this.#clients.set(phone, client)
    for (const look of this.#waiting) look()
  }

  remove(phone: string, client: Client): void {
    if (this.#clients.get(phone) === client) this.#clients.delete(phone)
  }

  /** Resolves to null when no client asks for this number in time. */
  find(phone: string): Promise<Client | null> {
    return new Promise(resolve => {
      const finish = (client: Client | null) => {
        clearTimeout(timer)
        this.#waiting.delete(look)
        resolve(client)
      }
      const timer = setTimeout(() => finish(null), PATIENCE_MS)
      const look = () => {
        const client = this.#clients.get(phone)
        if (client) finish(client)
      }
      this.#waiting.add(look)
      look()
    })
  }
}
