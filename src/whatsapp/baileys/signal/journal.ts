import { createHash } from 'node:crypto'
import type { SignalDataSet } from 'baileys'
import type { CredentialStore } from './credential-store.ts'
import { ownBytes } from './own-bytes.ts'

const SLOTS = 128
/** Recorded messages that stay for a while all the same: the parts of one stanza are recorded one by one. */
const KEPT_RECORDED = 16
/** A larger plaintext has a row of its own, which is read only when its message is delivered again. */
const MAX_INLINE_BYTES = 256 * 1024
const TYPE = 'journal'
const LARGE_TYPE = 'journal-large'

interface Entry {
  seq: number
  digest: string
  /** Absent: in the row of the same slot and of `LARGE_TYPE`. */
  plaintext?: Uint8Array
}

type LargeEntry = Required<Pick<Entry, 'digest' | 'plaintext'>>

interface Kept {
  slot: number
  plaintext: Uint8Array | undefined
}

/**
 * What was decrypted and may not be recorded, by the digest of its ciphertext. A message can be decrypted once only,
 * because the key is used up with it; so the plaintext is stored in the same commit as the keys, and when WhatsApp
 * delivers the message again (we had died before the receipt), it is read from here.
 *
 * What comes live overtakes what WhatsApp had kept, so that any number of messages may be decrypted before one is
 * delivered again: a slot is used anew only when its message is recorded. After a restart nobody knows which are; those
 * in use are few, and the oldest of them go first.
 *
 * A large plaintext (a contact card with a photo, 16 MiB at most) is neither kept in memory nor read at a login. Its row
 * is erased in the next commit after its message is recorded.
 */
export class Journal {
  readonly #store: CredentialStore
  readonly #entries = new Map<string, Kept>()
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
    const digest = digestOf(ciphertext)
    const kept = this.#entries.get(digest)
    return kept && (kept.plaintext ?? this.#readLarge(kept.slot, digest))
  }

  /** The rows to commit together with the keys that the decryption changed. */
  entryFor(ciphertext: Uint8Array, plaintext: Uint8Array): SignalDataSet {
    const inline: Record<string, Entry | null> = {}
    const large: Record<string, LargeEntry | null> = {}
    for (const slot of this.#emptyLargeRecorded()) {
      inline[slot] = null
      large[slot] = null
    }
    const digest = digestOf(ciphertext)
    const isLarge = plaintext.length > MAX_INLINE_BYTES
    const bytes = ownBytes(plaintext)
    const entry: Entry = { seq: this.#nextSeq++, digest, ...(!isLarge && { plaintext: bytes }) }
    const { slot, heldLarge } = this.#takeSlot()
    this.#keep(slot, entry)
    inline[slot] = entry
    if (isLarge) large[slot] = { digest, plaintext: bytes }
    else if (heldLarge) large[slot] = null
    // Baileys passes rows of every type through to the store; its types only know its own.
    return { [TYPE]: inline, [LARGE_TYPE]: large } as unknown as SignalDataSet
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

  async #readLarge(slot: number, digest: string): Promise<Uint8Array | undefined> {
    const rows = await this.#store.read(LARGE_TYPE, [String(slot)])
    const entry = rows.get(String(slot)) as LargeEntry | undefined
    // The slot may have been used anew while it was read.
    return entry?.digest === digest ? entry.plaintext : undefined
  }

  #keep(slot: number, { digest, plaintext }: Entry): void {
    this.#slots.set(slot, digest)
    this.#entries.set(digest, { slot, plaintext })
  }

  #takeSlot(): { slot: number; heldLarge: boolean } {
    const [oldestRecorded] = this.#recorded
    if (oldestRecorded !== undefined && this.#recorded.size > KEPT_RECORDED) return this.#empty(oldestRecorded)
    if (this.#slots.size < SLOTS) return { slot: this.#firstUnused(), heldLarge: false }
    const [oldest = 0] = this.#slots.keys()
    return this.#empty(oldestRecorded ?? oldest)
  }

  #firstUnused(): number {
    let slot = 0
    while (this.#slots.has(slot)) slot += 1
    return slot
  }

  /** Their rows are to be erased. */
  #emptyLargeRecorded(): number[] {
    const slots = [...this.#recorded].filter(slot => this.#holdsLarge(slot))
    for (const slot of slots) this.#empty(slot)
    return slots
  }

  #holdsLarge(slot: number): boolean {
    const kept = this.#entries.get(this.#slots.get(slot) ?? '')
    return kept !== undefined && kept.plaintext === undefined
  }

  #empty(slot: number): { slot: number; heldLarge: boolean } {
    const heldLarge = this.#holdsLarge(slot)
    const digest = this.#slots.get(slot)
    if (digest !== undefined) this.#entries.delete(digest)
    this.#slots.delete(slot)
    this.#recorded.delete(slot)
    return { slot, heldLarge }
  }
}

function digestOf(ciphertext: Uint8Array): string {
  return createHash('sha256').update(ciphertext).digest('base64')
}
