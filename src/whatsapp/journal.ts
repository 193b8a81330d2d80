import { createHash } from 'node:crypto'
import type { SignalDataSet } from 'baileys'
import type { CredentialStore } from './credential-store.ts'

/** More than WhatsApp has on the way to us unacknowledged; older ones can at worst cost a request to send again. */
const SLOTS = 128
/** Larger than any text message; what is larger (history) is not journalled. */
const MAX_PLAINTEXT_BYTES = 256 * 1024
const TYPE = 'journal'

interface Entry {
  seq: number
  digest: string
  plaintext: Uint8Array
}

/**
 * What was decrypted of late, by the digest of its ciphertext. A message can be decrypted once only, because the key is
 * used up with it; so the plaintext is stored in the same commit as the keys, and when WhatsApp delivers the message
 * again (we had died before the receipt), it is read from here. A ring: it never grows.
 */
export class Journal {
  readonly #store: CredentialStore
  readonly #plaintexts = new Map<string, Uint8Array>()
  #nextSeq = 0
  #loaded: Promise<void> | undefined

  constructor(store: CredentialStore) {
    this.#store = store
  }

  async find(ciphertext: Uint8Array): Promise<Uint8Array | undefined> {
    this.#loaded ??= this.#load()
    await this.#loaded
    return this.#plaintexts.get(digestOf(ciphertext))
  }

  /** The row to commit together with the keys that the decryption changed; undefined for what is too large. */
  entryFor(ciphertext: Uint8Array, plaintext: Uint8Array): SignalDataSet | undefined {
    if (plaintext.length > MAX_PLAINTEXT_BYTES) return undefined
    const digest = digestOf(ciphertext)
    const entry: Entry = { seq: this.#nextSeq++, digest, plaintext }
    this.#remember(digest, plaintext)
    // Baileys passes rows of every type through to the store; its types only know its own.
    return { [TYPE]: { [String(entry.seq % SLOTS)]: entry } } as unknown as SignalDataSet
  }

  async #load(): Promise<void> {
    const rows = await this.#store.read(
      TYPE,
      Array.from({ length: SLOTS }, (_, slot) => String(slot)),
    )
    const entries = ([...rows.values()] as Entry[]).sort((a, b) => a.seq - b.seq)
    for (const { digest, plaintext } of entries) this.#remember(digest, plaintext)
    this.#nextSeq = (entries.at(-1)?.seq ?? -1) + 1
  }

  #remember(digest: string, plaintext: Uint8Array): void {
    this.#plaintexts.set(digest, plaintext)
    if (this.#plaintexts.size <= SLOTS) return
    const [oldest] = this.#plaintexts.keys()
    if (oldest !== undefined) this.#plaintexts.delete(oldest)
  }
}

function digestOf(ciphertext: Uint8Array): string {
  return createHash('sha256').update(ciphertext).digest('base64')
}
