import { BadSettings, type Settings } from '../../config.ts'
import { openKeys } from '../../keys.ts'
import { StoreUnavailable, StoreUnusable } from '../../store/errors.ts'
import { openStore } from '../../store/open-store.ts'
import type { Store } from '../../store/store.ts'

/** The store, without the service. On SQLite the service must be stopped. @throws StoreUnusable, StoreUnavailable, BadSettings */
export function openStoreOf(settings: Settings): Promise<Store> {
  const { dataDir, databaseUrl, ratePerMinute, upgradeBackups } = settings
  const { masterKey } = openKeys(settings)
  return openStore({ dataDir, masterKey, ratePerMinute, upgradeBackups, ...(databaseUrl !== null && { databaseUrl }) })
}

/** The audit entry for the action of a command. */
export function auditEntry(action: string, instanceId: string, details: Record<string, string>) {
  return { actor: 'command_line', actorName: null, action, instanceId, address: null, details }
}

/** Whether the message of the error tells the operator what to do. Those of the operating system name the file. */
export function isForOperator(error: unknown): error is Error {
  if (error instanceof BadSettings || error instanceof StoreUnusable || error instanceof StoreUnavailable) return true
  return error instanceof Error && 'syscall' in error
}
