import type { Role } from '../../../domain/access.ts'

export interface AccountsTable {
  id: string
  name: string
  /** The name as it is compared: normalised, in lower case. */
  name_key: string
  role: Role
  /** IDs separated by spaces. Null: all instances. */
  instances: string | null
  /** Null until the invitation is accepted, and for a person who signs in only with a provider. */
  password_hash: string | null
  /** SHA-256 of the link's token; null if there is none. */
  invitation_digest: Uint8Array | null
  /** On the database's clock. */
  invitation_ends_at: number | null
  /** The account that created the link. Null: the admin key, a session without an account, or a node of an earlier version. */
  invited_by: string | null
  created_at: number
}

export interface AccountSessionsTable {
  id: string
  account_id: string
  token_digest: Uint8Array
  created_at: number
  expires_at: number
  user_agent: string | null
}

export interface AccountIdentitiesTable {
  issuer: string
  subject: string
  account_id: string
  created_at: number
}
