import type { InstanceId } from '../../domain/ids.ts'
import type { Page, PageRequest } from '../engine/page.ts'

/** The description of one action. It contains no text of a message and no secret. */
export interface AuditEntry {
  /**
   * The ID of an account, an API key or a linking link, or one of these: `token` (an instance's), `admin_key`, `panel`
   * (a session that was opened with the admin key or the panel's password), `nobody` (a failed sign-in),
   * `command_line`.
   */
  actor: string
  /** The name of the account or the key. Null for all others. */
  actorName: string | null
  /** The `operationId` of the call. */
  action: string
  instanceId: InstanceId | null
  /** The caller's address. */
  address: string | null
  /** IDs and names. */
  details: Readonly<Record<string, string | number | boolean | null>>
}

export interface AuditRecord extends AuditEntry {
  /** From 1, without gaps. */
  seq: number
  at: number
  /** SHA-256 over this record and the digest of the one before, in hexadecimal. */
  digest: string
}

export interface AuditFilter {
  actor?: string | undefined
  action?: string | undefined
  instanceId?: InstanceId | undefined
  /** Milliseconds since 1970, inclusive. */
  since?: number | undefined
  /** Exclusive. */
  until?: number | undefined
}

export interface AuditCheck {
  /** The number of the newest record, which equals the number of records in an intact chain. */
  entries: number
  /** The digest of the newest record, in hexadecimal. It covers all records. */
  digest: string
  /** The first record that is missing or does not match the previous record. Null: none. */
  brokenAt: number | null
}

/** The entry of one call, and its number and digest once it is recorded. */
export interface PendingAudit {
  readonly entry: AuditEntry
  readonly recorded: AuditNumber | null
}

export type AuditNumber = Pick<AuditRecord, 'seq' | 'digest'>

/**
 * Records of who did what. Records are only added, each with the digest of the previous record. They outlive the
 * instance and the account that they name.
 */
export interface Audit {
  /**
   * Runs a change. Its first write that changes something records `entry`, as it is at that time, in the same commit. The
   * writes of an owner (those with a lease) never record it, nor do those that only prepare a change.
   */
  during<T>(entry: AuditEntry, change: (pending: PendingAudit) => T): T
  /**
   * Ends a change. If it succeeded without a write that could record the entry, records the entry in a commit of its own. If
   * it made such a write, which changed nothing, the entry is not recorded. Later writes never record it.
   */
  finish(pending: PendingAudit, succeeded: boolean): Promise<void>
  /** Records an entry in a commit of its own. */
  append(entry: AuditEntry): Promise<AuditNumber>
  /** Newest first. */
  list(page: PageRequest, filter: AuditFilter): Promise<Page<AuditRecord>>
  /** Reads every record, in many steps. */
  verify(): Promise<AuditCheck>
}
