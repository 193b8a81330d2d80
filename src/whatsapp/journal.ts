import { createHash } from 'node:crypto'
import type { SignalDataSet } from 'baileys'
import type { CredentialStore } from './credential-store.ts'
import { ownBytes } from './own-bytes.ts'

const SLOTS = 128
/** Recorded messages that stay for a while all the same: the parts of one stanza are recorded one by one. */
const KEPT_RECORDED = 16
/** Larger than any text message; what is larger (history) is not journalled. */
const MAX_PLAINTEXT_BYTES = 256 * 1024
const TYPE = 'journal'

interface Entry {
  seq: number
  digest: string
  plaintext: Uint8Array
}

/**
 * What was decrypted and may not be recorded, by the digest of its ciphertext. A message can be decrypted once only,
 * because the key is used up with it; so the plaintext is stored in the same commit as the keys, and when WhatsApp
 * delivers the message again (we had died before the receipt), it is read from here.
 *
 * What comes live overtakes what WhatsApp had kept, so that any number of messages may be decrypted before one is
 * delivered again: a slot is used anew only when its message is recorded. After a restart nobody knows which are; those
 * in use are few, and the oldest of them go first.
 */
export class Journal {
  readonly #store: CredentialStore
  readonly #entries = new Map<string, { slot: number; plaintext: Uint8Array }>()
  /** The digests by slot, the oldest first. */
  readonly #slots = new Map<number, string>()
  /** Slots whose message is recorded, the oldest first. */
  readonly #recorded = new Set<number>()
  #nextSeq = 0
  #loaded: Promise<void> | undefined

  constructor(store: CredentialStore) {
    this.#store = store
  }

  async find(ciphertext: Uint8Array): Promise<Uint8Array | undefined> {
    this.#loaded ??= this.#load()
    await this.#loaded
    return this.#entries.get(digestOf(ciphertext))?.plaintext
  }

  /** The row to commit together with the keys that the decryption changed; undefined for what is too large. */
  entryFor(ciphertext: Uint8Array, plaintext: Uint8Array): SignalDataSet | undefined {
    if (plaintext.length > MAX_PLAINTEXT_BYTES) return undefined
    const digest = digestOf(ciphertext)
    const entry: Entry = { seq: this.#nextSeq++, digest, plaintext: ownBytes(plaintext) }
    const slot = this.#takeSlot()
    this.#keep(slot, entry)
    // Baileys passes rows of every type through to the store; its types only know its own.
    return { [TYPE]: { [String(slot)]: entry } } as unknown as SignalDataSet
  }

  /** What the message tells is recorded for good. */
  recorded(ciphertext: Uint8Array): void {
    const entry = this.#entries.get(digestOf(ciphertext))
    if (entry) this.#recorded.add(entry.slot)
  }

  async #load(): Promise<void> {
    const rows = await this.#store.read(
      TYPE,
      Array.from({ length: SLOTS }, (_, slot) => String(slot)),
    )
    const entries = ([...rows] as [string, Entry][]).sort(([, a], [, b]) => a.seq - b.seq)
    for (const [slot, entry] of entries) this.#keep(Number(slot), entry)
    this.#nextSeq = (entries.at(-1)?.[1].seq ?? -1) + 1
  }

  #keep(slot: number, { digest, plaintext }: Entry): void {
    this.#slots.set(slot, digest)
    this.#entries.set(digest, { slot, plaintext })
  }

  #takeSlot(): number {
    const [oldestRecorded] = this.#recorded
    if (oldestRecorded !== undefined && this.#recorded.size > KEPT_RECORDED) return this.#empty(oldestRecorded)
    if (this.#slots.size < SLOTS) return this.#firstUnused()
    const [oldest = 0] = this.#slots.keys()
    return this.#empty(oldestRecorded ?? oldest)
  }

  #firstUnused(): number {
    let slot = 0
    while (this.#slots.has(slot)) slot += 1
    return slot
  }

  #empty(slot: number): number {
    const digest = this.#slots.get(slot)
    if (digest !== undefined) this.#entries.delete(digest)
    this.#slots.delete(slot)
    this.#recorded.delete(slot)
    return slot
  }
}

function digestOf(ciphertext: Uint8Array): string {
  return createHash('sha256').update(ciphertext).digest('base64')
}
