import type { AccountAccess, Identity } from '../accounts/accounts.ts'

/** A panel session. Times are milliseconds since 1970. */
export interface PanelSession {
  id: string
  createdAt: number
  expiresAt: number
  /** The browser's User-Agent, truncated; null if it sent none. */
  userAgent: string | null
  /** Null: it was opened with the admin key or the panel's password. */
  account: SessionAccount | null
}

/** The account of a session, as it is at the time of the call. */
export interface SessionAccount extends AccountAccess {
  id: string
  name: string
}

export interface NewSession extends Omit<PanelSession, 'account'> {
  tokenDigest: Uint8Array
  /** Null: opened with the admin key or the panel's password. */
  accountId: string | null
  /** The hash of the password that was checked. Null if an identity or the admin key was checked instead. */
  passwordHash: string | null
  /** The login of the provider that was checked instead of a password. Only with an account. */
  identity?: Identity | null
}

/** The key that wrong keys are counted under, and the length of the window, which opens with the first wrong key. */
export interface WrongKeyWindow {
  key: string
  windowMs: number
}

/** The number of wrong keys in the current window, and the milliseconds until the window ends. */
export interface WrongKeyCount {
  count: number
  endsInMs: number
}

/** `not_owner`: the account is no longer an owner. `signed_out`: the session that would be kept has ended. */
export type PanelPasswordChange = 'changed' | 'not_owner' | 'signed_out'

export interface Sessions {
  /**
   * False, and nothing is created, if the account does not exist, or the password or identity that was checked has been replaced
   * since.
   */
  create(session: NewSession): Promise<boolean>
  /** Null if the session is unknown, was ended, is expired at `now`, or its account was removed. */
  find(tokenDigest: Uint8Array, now: number): Promise<PanelSession | null>
  /**
   * The sessions of an account, or (null) those without an account, newest first. Also erases all sessions that are
   * expired at `now`.
   */
  list(accountId: string | null, now: number): Promise<PanelSession[]>
  /** Ends a session of an account, or (null) one without an account. False if there is no such session. */
  end(id: string, accountId: string | null): Promise<boolean>
  /** Ends the sessions of an account, or (null) those without an account, except `keptId`. False if there are none. */
  endOthers(accountId: string | null, keptId: string | null): Promise<boolean>
  /** The hash of the panel password as it was stored; null if none is set. */
  findPasswordHash(): Promise<string | null>
  /** Counts one wrong key in each of the windows, by the database's clock. @returns the counts in the same order */
  countWrongKey(windows: readonly WrongKeyWindow[]): Promise<WrongKeyCount[]>
  /** Subtracts a counted key that turned out to be right. */
  uncountWrongKey(windows: readonly WrongKeyWindow[]): Promise<void>
  /** The account that set the panel's password. Null: no password is set, or it was set without an account. */
  findPasswordSetter(): Promise<string | null>
  /**
   * Sets or clears (null) the panel's password and ends every session without an account except `keptId`, in one commit.
   * @param keptId the caller's session. Null: the admin key
   * @param setBy the account that sets it. The password is cleared when this account is removed or is no longer an
   * owner. Null: the admin key, or a session without an account
   */
  setPasswordHash(hash: string | null, keptId: string | null, setBy?: string | null): Promise<PanelPasswordChange>
}
