import type { Settings } from '../../config.ts'
import { openKeys } from '../../keys.ts'
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
