/** Rows are only ever inserted. */
export interface AuditLogTable {
  /** From 1, without gaps. */
  seq: number
  at: number
  /** An ID, or one of the fixed names in `store/audit/audit.ts`. */
  actor: string
  /** The name of the account or the key at that time. */
  actor_name: string | null
  action: string
  /** Not a foreign key: the row outlives the instance. */
  instance: string | null
  address: string | null
  /** A JSON object. */
  details: string
  /** The digest of the row before; zeros in the first row. */
  previous: Uint8Array
}

/** One row: the number and the digest of the newest row of `audit_log`. */
export interface AuditHeadTable {
  id: number
  seq: number
  digest: Uint8Array
}
