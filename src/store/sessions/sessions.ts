/** Somebody signed in to the panel. Moments are milliseconds since 1970. */
export interface PanelSession {
  id: string
  createdAt: number
  expiresAt: number
  /** The browser's User-Agent, cut off; null where it sent none. */
  userAgent: string | null
}

/** Wrong keys that came from one address in the window that is open, and the milliseconds until it ends. */
export interface WrongKeyCount {
  count: number
  endsInMs: number
}

export interface Sessions {
  create(session: PanelSession & { tokenDigest: Uint8Array }): Promise<void>
  /** Null for one that is unknown, ended, or expired at `now`. */
  find(tokenDigest: Uint8Array, now: number): Promise<PanelSession | null>
  /** Newest first; those expired at `now` are erased. */
  list(now: number): Promise<PanelSession[]>
  /** Ends one; nothing happens if it is not there. */
  end(id: string): Promise<void>
  /** The panel password's hash, in the form its maker gave it; null while none is set. */
  findPasswordHash(): Promise<string | null>
  /** Counts one more, in a window of 60 s that opens with the first; on the database's clock. */
  countWrongKey(address: string): Promise<WrongKeyCount>
  /** One commit: sets or clears (null) the hash, and ends every session but `keptId`. */
  setPasswordHash(hash: string | null, keptId: string | null): Promise<void>
}
