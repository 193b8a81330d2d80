export interface CredentialsTable {
  instance_id: string
  type: string
  id: string
  /** Sealed. */
  value: Uint8Array
}

export interface SandboxRecordsTable {
  instance_id: string
  key: string
  value: Uint8Array
}

export interface MetaTable {
  key: string
  value: Uint8Array
}
