import { createHash } from 'node:crypto'
import type { SignalDataSet } from 'baileys'
import { ownBytes } from '../../../kit/own-bytes.ts'
import type { CredentialStore } from './credential-store.ts'

const SLOTS = 128
/** Number of recorded messages whose slots are not reused yet, because the parts of a stanza are recorded one by one. */
const KEPT_RECORDED = 16
/** A larger plaintext has its own row, which is read only when its message is delivered again. */
const MAX_INLINE_BYTES = 256 * 1024
const TYPE = 'journal'
const LARGE_TYPE = 'journal-large'

interface Entry {
  seq: number
  digest: string
  /** If absent, the plaintext is in the row of type `LARGE_TYPE` with the same slot. */
  plaintext?: Uint8Array
}

type LargeEntry = Required<Pick<Entry, 'digest' | 'plaintext'>>

interface Kept {
  slot: number
  plaintext: Uint8Array | undefined
}

/**
 * Plaintexts of messages that may not be recorded yet, by the digest of the ciphertext. Decryption consumes the key, so a
 * message can be decrypted only once. Its plaintext is stored in the same commit as the changed keys. If the process dies
 * before it sends the receipt, WhatsApp delivers the message again, and the plaintext is read from here.
 *
 * Many other messages may be decrypted before WhatsApp delivers a message again. A slot is therefore reused only when
 * its message is recorded, or when no slot is left. After a restart it is unknown which messages are recorded, so the
 * oldest slots are then reused first. Few of their messages are still needed.
 *
 * A large plaintext (a contact card with a photo, at most 16 MiB) has a row of its own, which is not kept in memory and not
 * read at login. The row is deleted in the next commit after its message is recorded.
 */
export class Journal {
  readonly #store: CredentialStore
  readonly #entries = new Map<string, Kept>()
  /** Digests by slot, oldest first. */
  readonly #slots = new Map<number, string>()
  /** Slots whose message is recorded, oldest first. */
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
    const entry = this.#entries.get(digest)
    return entry && (entry.plaintext ?? this.#readLarge(entry.slot, digest))
  }

  /** The rows to commit together with the changed keys. */
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
    // Baileys passes rows of any type on to the store, but its types list only its own.
    return { [TYPE]: inline, [LARGE_TYPE]: large } as unknown as SignalDataSet
  }

  /** Marks the message as recorded, so its slot can be reused. */
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
    // The slot may have been reused during the read.
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

  /** Empties the slots of recorded large plaintexts. @returns the slots, whose rows are to be deleted */
  #emptyLargeRecorded(): number[] {
    const slots = [...this.#recorded].filter(slot => this.#holdsLarge(slot))
    for (const slot of slots) this.#empty(slot)
    return slots
  }

  #holdsLarge(slot: number): boolean {
    const entry = this.#entries.get(this.#slots.get(slot) ?? '')
    return entry !== undefined && entry.plaintext === undefined
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
