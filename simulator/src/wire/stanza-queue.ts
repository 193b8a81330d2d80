/**
 * The stanzas that WhatsApp's server holds for the linked client of one account. A stanza is
 *
 *   queued   durable; not sent before its `dueAt`
 *   sent     written to the current connection, at most once per connection
 *   settled  confirmed by the client (a receipt or acknowledgement with its ID) and deleted
 *
 * A stanza that was due but not settled when the client logs in is sent again, marked `offline`. Nothing is therefore
 * lost if a connection is cut or this process dies.
 */

import type { Records } from '../signal/records.ts'
import { decodeNode, encodeNode, type Node } from './nodes.ts'

/** The data to encrypt a message again if the client could not decrypt it. */
export interface Original {
  /** Number of the contact that wrote it. */
  from: string
  group?: string | undefined
  /** The encoded content. */
  content: Buffer
}

export interface QueuedStanza {
  readonly sequence: number
  stanza: Node
  /** Milliseconds since the epoch, at most a minute ahead. */
  readonly dueAt: number
  readonly original: Original | null
  /** The number of the login that it was last sent in. */
  sentIn: number | null
  /** How often it was encrypted again, minus the refusals of earlier copies that have arrived since. */
  unansweredRetries: number
}

const DIGITS = 12
/** No stanza is queued for a later time than this. If one is due later, the clock has been set back. */
const MAX_AHEAD_MS = 60_000

export function isDue({ dueAt }: QueuedStanza, now: number): boolean {
  return dueAt <= now || dueAt > now + MAX_AHEAD_MS
}

export class StanzaQueue {
  readonly #records: Records
  readonly #entries = new Map<number, QueuedStanza>()
  readonly #bySettlement = new Map<string, Set<QueuedStanza>>()
  #lastSequence = 0

  constructor(records: Records) {
    this.#records = records
  }

  get size(): number {
    return this.#entries.size
  }

  restore(sequence: number, text: string): void {
    const { stanza, dueAt, original } = JSON.parse(text)
    this.#keep({
      sequence,
      stanza: decodeNode(Buffer.from(stanza, 'base64')),
      dueAt,
      original: original && { ...original, content: Buffer.from(original.content, 'base64') },
      sentIn: null,
      unansweredRetries: 0,
    })
  }

  add(stanza: Node, dueAt: number, original: Original | null = null): QueuedStanza {
    const entry = {
      sequence: this.#lastSequence + 1,
      stanza,
      dueAt,
      original,
      sentIn: null,
      unansweredRetries: 0,
    }
    this.#keep(entry)
    this.#record(entry)
    return entry
  }

  /** Replaces a stanza that the client could not decrypt. The new one counts as never sent. */
  replace(entry: QueuedStanza, stanza: Node): void {
    entry.stanza = stanza
    entry.sentIn = null
    entry.unansweredRetries++
    this.#record(entry)
  }

  has(entry: QueuedStanza): boolean {
    return this.#entries.get(entry.sequence) === entry
  }

  /** In the order they were queued. */
  entries(): QueuedStanza[] {
    return [...this.#entries.values()].sort((a, b) => a.sequence - b.sequence)
  }

  /** The oldest due stanza that a confirmation with this ID settles; `party` as {@link receiptParty} returns it. */
  find(tag: string, id: string, now: number, party = ''): QueuedStanza | null {
    let oldest: QueuedStanza | null = null
    for (const entry of this.#bySettlement.get(settlement(tag, id, party)) ?? []) {
      if (isDue(entry, now) && (!oldest || entry.sequence < oldest.sequence)) oldest = entry
    }
    return oldest
  }

  settle(entry: QueuedStanza): void {
    this.#entries.delete(entry.sequence)
    const key = settlementOf(entry.stanza)
    const same = this.#bySettlement.get(key)
    same?.delete(entry)
    if (same?.size === 0) this.#bySettlement.delete(key)
    this.#records.drop(recordKey(entry.sequence))
  }

  clear(): void {
    for (const entry of this.entries()) this.settle(entry)
  }

  #keep(entry: QueuedStanza): void {
    this.#lastSequence = Math.max(this.#lastSequence, entry.sequence)
    this.#entries.set(entry.sequence, entry)
    const key = settlementOf(entry.stanza)
    const same = this.#bySettlement.get(key)
    if (same) same.add(entry)
    else this.#bySettlement.set(key, new Set([entry]))
  }

  #record({ sequence, stanza, dueAt, original }: QueuedStanza): void {
    const encode = () =>
      JSON.stringify({
        stanza: encodeNode(stanza).toString('base64'),
        dueAt,
        original: original && { ...original, content: original.content.toString('base64') },
      })
    this.#records.put(recordKey(sequence), encode)
  }
}

function recordKey(sequence: number): string {
  return `queue/${sequence.toString().padStart(DIGITS, '0')}`
}

/** Distinguishes the receipts for one message. */
export function receiptParty(
  type: string | undefined,
  jid: string | undefined,
  participant: string | undefined,
): string {
  return `${type ?? ''}|${jid ?? ''}|${participant ?? ''}`
}

function settlementOf({ tag, attrs }: Node): string {
  const party = tag === 'receipt' ? receiptParty(attrs['type'], attrs['from'], attrs['participant']) : ''
  return settlement(tag, attrs['id'] ?? '', party)
}

function settlement(tag: string, id: string, party: string): string {
  return `${tag}|${id}|${party}`
}
