export interface PanelSessionsTable {
  id: string
  /** SHA-256 of the cookie's token. */
  token_digest: Uint8Array
  created_at: number
  expires_at: number
  user_agent: string | null
}
