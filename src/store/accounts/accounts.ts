import type { Role } from '../../domain/access.ts'
import type { InstanceId } from '../../domain/ids.ts'

/** The permissions of an account. */
export interface AccountAccess {
  role: Role
  /** Null: all instances. Always null for an owner. */
  instances: readonly InstanceId[] | null
}

/** A login of an OpenID Connect provider. The provider never assigns it to another person. */
export interface Identity {
  issuer: string
  subject: string
}

/** A person who can sign in. */
export interface Account extends AccountAccess {
  id: string
  name: string
  createdAt: number
  /** Whether the person can sign in: a password is set, or an identity is bound. */
  isActive: boolean
  hasIdentity: boolean
  /** When the open invitation ends; null if there is none. It may be in the past. */
  invitationEndsAt: number | null
}

export interface Invitation {
  /** SHA-256 of the link's token. */
  digest: Uint8Array
  lastsMs: number
  /** The account that creates it. Null: none. */
  invitedBy: string | null
}

export type AccountChange = { kind: 'changed'; account: Account } | { kind: 'no_account' } | { kind: 'last_owner' }

/** `wrong_password`: the old hash is not the account's. `signed_out`: the session that would be kept has ended. */
export type PasswordChange = 'changed' | 'wrong_password' | 'signed_out'

/**
 * `other_login`: the account has a password, or another identity of this issuer.
 * `taken`: the identity is bound to another account.
 */
export type Binding = 'bound' | 'other_login' | 'taken' | 'no_account'

export interface Accounts {
  /** `exists`: another account has this name; `full`: there are `MAX_ACCOUNTS`; `not_owner`: the inviting account is not an owner. */
  create(
    account: Pick<Account, 'id' | 'name'> & AccountAccess,
    invitation: Invitation,
    now: number,
  ): Promise<Account | 'exists' | 'full' | 'not_owner'>
  /** Sorted by name. */
  list(): Promise<Account[]>
  /**
   * Takes effect immediately on every node. The last active owner keeps its role. If the account is no longer an owner,
   * this ends the open invitations that it created, and those without a known creator. If it had set the panel's password,
   * this also clears the password and ends all sessions without an account.
   */
  change(id: string, access: AccountAccess): Promise<AccountChange>
  /**
   * Deletes the account and its sessions in one commit, and ends invitations and clears the panel's password like `change`.
   * The last active owner is not deleted.
   */
  remove(id: string): Promise<AccountChange>
  /** Replaces the open invitation, if there is one. Null: there is no such account. `not_owner`: the inviting account is not an owner. */
  invite(id: string, invitation: Invitation): Promise<Account | 'not_owner' | null>
  /** The account of an invitation that is open and has not ended, by the database's clock. Changes nothing. */
  findInvited(digest: Uint8Array): Promise<Account | null>
  /**
   * Uses up an invitation, sets the password, unbinds the account's identities and ends its sessions, in one commit.
   * Null if the invitation is not open or has ended. Of concurrent calls, only one succeeds.
   */
  accept(digest: Uint8Array, passwordHash: string): Promise<Account | null>
  /**
   * Like `accept`, with an identity instead of a password. It replaces the account's password and its other identities.
   * `taken`: the identity is bound to another account, and nothing changes.
   */
  acceptWith(digest: Uint8Array, identity: Identity, now: number): Promise<Account | 'taken' | null>
  /** The account that the identity is bound to. */
  findByIdentity(identity: Identity): Promise<Account | null>
  /** The account of a name, active or not. */
  findByName(name: string): Promise<Account | null>
  /** Binds an identity to an account. If the account was not active, its invitation ends. */
  bind(accountId: string, identity: Identity, now: number): Promise<Binding>
  /** Sets a new password, ends the open invitation and ends the account's sessions except `keptId`, in one commit. */
  changePassword(id: string, hashes: { old: string; new: string }, keptId: string): Promise<PasswordChange>
  /** The account of a name that has a password, with its hash. */
  findForSignIn(name: string): Promise<{ account: Account; passwordHash: string } | null>
}
