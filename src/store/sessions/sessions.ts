/** A panel session. Times are milliseconds since 1970. */
export interface PanelSession {
  id: string
  createdAt: number
  expiresAt: number
  /** The browser's User-Agent, truncated; null if it sent none. */
  userAgent: string | null
}

/** The number of wrong keys from one address in the current window, and the milliseconds until the window ends. */
export interface WrongKeyCount {
  count: number
  endsInMs: number
}

export interface Sessions {
  create(session: PanelSession & { tokenDigest: Uint8Array }): Promise<void>
  /** Null if it is unknown, was ended, or is expired at `now`. */
  find(tokenDigest: Uint8Array, now: number): Promise<PanelSession | null>
  /** Newest first. Erases sessions that are expired at `now`. */
  list(now: number): Promise<PanelSession[]>
  /** Ends a session. Does nothing if it does not exist. */
  end(id: string): Promise<void>
  /** The hash of the panel password as it was stored; null if none is set. */
  findPasswordHash(): Promise<string | null>
  /** Counts a wrong key in a window of 60 s that opens with the first one, by the database's clock. */
  countWrongKey(address: string): Promise<WrongKeyCount>
  /** Sets or clears (null) the hash and ends every session except `keptId`, in one commit. */
  setPasswordHash(hash: string | null, keptId: string | null): Promise<void>
}
