/** One fault of the network, as data. */
export interface Rule {
  when: When
  do: Action
  /** The rule is removed after this time. Default: it stays until it is removed. */
  forMs?: number
}

/** The stanzas that a rule applies to. An omitted field matches everything. */
export interface When {
  /**
   * The tag: `message`, `receipt`, `ack`, `iq`, `notification`, `presence`, `ib`, `success`. `upload` and `download` are
   * requests to the media host (`in`; with the attribute `type` or `path`). Their account is the one that the file belongs
   * to: its client or one of its contacts has uploaded the file.
   */
  stanza?: string
  /** `in`: from a client; `out`: to it. */
  direction?: Direction
  /** Phone number of the account whose client it is. */
  account?: string
  /** Phone number of the sender or recipient, also as a group's participant, by number or LID. */
  contact?: string
  /** Attributes and their values; `''` matches a missing attribute. */
  attrs?: Readonly<Record<string, string>>
  /** Only the nth stanza that matches all of the above, from 1. */
  nth?: number
  times?: number
  /** The share of matching stanzas, from 0 to 1. The seed determines which. */
  probability?: number
}

export type Direction = 'in' | 'out'

/**
 * The effect on a matching stanza. All matching rules are applied in the order they were set. The first that stops the
 * stanza (`hold`, `drop`, `cut`, or an error for an arriving one) is the last.
 *
 * - `hold`: it waits until it is released. Later stanzas overtake it.
 * - `drop`: it is lost.
 * - `double`: it is passed on twice.
 * - `cut`: the socket ends and the stanza is lost. `cut_after`: it is passed on, then the socket ends.
 * - `garble`: its ciphertexts cannot be decrypted.
 * - `delayMs`: it is passed on after this time plus a random time up to `jitterMs`. Stanzas can therefore be reordered.
 * - `error`: an acknowledgement carries this error; an answer becomes an error; an arriving message or query is answered
 *   with the error and not processed.
 * - `without`: attributes and child nodes with these names are removed at every depth.
 * - `set`: attributes of the stanza itself get these values.
 * - `noDevicesOf`: an answer has an error in place of the devices of this number.
 * - `bytesPerSecond`: the speed of an upload or download.
 * - `address`: the sender is named by its LID or its number; with `alternate: false` the other address is left out.
 * - `lid`: `number` has this LID (digits) instead of its own, wherever a stanza names it. Set it for both directions.
 *
 * For a request to the media host, `error` is the HTTP status, `garble` alters its bytes, `cut` ends the connection
 * after half of them, `cut_after` before the answer to a complete upload, and a dropped request is never answered.
 * `double`, `without`, `set`, `noDevicesOf`, `address` and `lid` have no effect on it.
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
  | { bytesPerSecond: number }
  | { without: readonly string[] }
  | { set: Readonly<Record<string, string>> }
  | { noDevicesOf: string }
  | { address: 'lid' | 'pn'; alternate?: boolean }
  | { lid: string; number: string }
