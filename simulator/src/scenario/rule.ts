/** One way in which the network misbehaves, as data. */
export interface Rule {
  when: When
  do: Action
  /** The rule is gone after so long. Default: it stays until it is removed. */
  forMs?: number
}

/** Which stanzas a rule is about. What is left out fits everything. */
export interface When {
  /** The tag: `message`, `receipt`, `ack`, `iq`, `notification`, `presence`, `ib`, `success`. */
  stanza?: string
  /** `in`: from a client; `out`: to it. */
  direction?: Direction
  /** Phone number of the account whose client it is. */
  account?: string
  /** Phone number that the stanza comes from or goes to, also as a group's participant, by number or LID. */
  contact?: string
  /** Attributes and their values; `''` stands for an attribute that is missing. */
  attrs?: Readonly<Record<string, string>>
  /** Only the nth that fits all of the above, from 1. */
  nth?: number
  /** Only the first so many that fit. */
  times?: number
  /** Of those that fit, this share, from 0 to 1; which ones, the seed says. */
  probability?: number
}

export type Direction = 'in' | 'out'

/**
 * What becomes of such a stanza. All rules that fit are applied, in the order they were set; the first that keeps the
 * stanza from going on (`hold`, `drop`, `cut`, or an error for one that arrives) is the last.
 *
 * - `hold`: it waits until it is released; those behind it overtake it.
 * - `drop`: it is lost.
 * - `double`: it goes on twice.
 * - `cut`: the socket ends, and the stanza is lost with it. `cut_after`: it goes on, then the socket ends.
 * - `garble`: its ciphertexts cannot be decrypted.
 * - `delayMs`: it goes on later, `jitterMs` at most later than that, as the seed says: so stanzas change places.
 * - `error`: an acknowledgement says this error; an answer becomes an error; a message or query that arrives gets the
 *   error and is not looked at.
 * - `without`: attributes and parts with these names are left out, however deep they are.
 * - `set`: attributes of the stanza itself say this.
 * - `address`: the sender is named by its LID or its number; with `alternate: false` nothing tells the other one.
 */
export type Action =
  | 'hold'
  | 'drop'
  | 'double'
  | 'cut'
  | 'cut_after'
  | 'garble'
  | { delayMs: number; jitterMs?: number }
  | { error: string }
  | { without: readonly string[] }
  | { set: Readonly<Record<string, string>> }
  | { address: 'lid' | 'pn'; alternate?: boolean }
