export interface ApiKeysTable {
  instance_id: string
  id: string
  name: string
  /** SHA-256 of the key. */
  digest: Uint8Array
  /** The first characters of the key, to recognise it. */
  prefix: string
  /** Separated by spaces. */
  scopes: string
  created_at: number
  /** On the database's clock. Null: never. */
  expires_at: number | null
  /** At most a minute behind. */
  last_used_at: number | null
}
