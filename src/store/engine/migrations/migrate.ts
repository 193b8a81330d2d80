import { type Kysely, sql } from 'kysely'
import { type Migration, Migrator } from 'kysely/migration'
import type { KeyCheck } from '../../encryption/key-check.ts'
import { NewerSchema } from '../../errors.ts'
import type { DatabaseKind } from '../database-kind.ts'
import { DIALECTS } from '../dialect.ts'
import type { Database } from '../schema/database.ts'
import { FLAVOURS, type Flavour } from './flavour.ts'
import { refuseForeign } from './foreign.ts'
import { listTables } from './list-tables.ts'
import { instancesTables } from './steps/0001-instances.ts'
import { messagesTables } from './steps/0002-messages.ts'
import { eventsTables } from './steps/0003-events.ts'
import { secretsTables } from './steps/0004-secrets.ts'
import { panelTables } from './steps/0005-panel.ts'
import { nodesTables } from './steps/0006-nodes.ts'
import { healthTables } from './steps/0007-health.ts'
import { betweenNodesTables } from './steps/0008-between-nodes.ts'
import { indexOrder } from './steps/0009-index-order.ts'
import { preparedMessages } from './steps/0010-prepared-messages.ts'
import { settledMessages } from './steps/0011-settled-messages.ts'
import { incomingMessages } from './steps/0012-incoming-messages.ts'
import { nodesDiffer } from './steps/0014-nodes-differ.ts'
import { endpoints } from './steps/0020-endpoints.ts'
import { eventNumbers } from './steps/0030-event-numbers.ts'
import { connectionReports } from './steps/0031-connection-reports.ts'
import { apiKeys } from './steps/0050-api-keys.ts'
import { audit } from './steps/0051-audit.ts'
import { accounts } from './steps/0052-accounts.ts'
import { alertsTables } from './steps/0060-alerts.ts'
import { conversations } from './steps/conversations/0080-conversations.ts'
import { references } from './steps/conversations/0081-references.ts'
import { changesOfMessages } from './steps/conversations/0082-changes-of-messages.ts'
import { chatOrder } from './steps/conversations/0085-chat-order.ts'
import { pace } from './steps/conversations/0086-pace.ts'
import { scheduledCommands } from './steps/conversations/0152-scheduled-commands.ts'
import { directory } from './steps/directory/0084-directory.ts'
import { numberChecks } from './steps/directory/0091-number-checks.ts'
import { dueGroups } from './steps/directory/0092-due-groups.ts'
import { handouts } from './steps/linking/0110-handouts.ts'
import { proxies } from './steps/linking/0141-proxies.ts'
import { passkeys } from './steps/linking/0142-passkeys.ts'
import { calls } from './steps/linking/0143-calls.ts'
import { sameNumber } from './steps/linking/0144-same-number.ts'
import { mediaTables } from './steps/media/0070-media.ts'
import { filesOfMessages } from './steps/media/0071-files-of-messages.ts'
import { receivedFiles } from './steps/media/0072-received-files.ts'
import { filesFromUrls } from './steps/media/0092-files-from-urls.ts'
import { fetchesByInstance } from './steps/media/0151-fetches-by-instance.ts'
import { settingsOfNodes } from './steps/nodes/0130-settings-of-nodes.ts'
import { accountIdentities } from './steps/people/0090-account-identities.ts'
import { makersOfLinks } from './steps/people/0154-makers-of-links.ts'
import { traceContexts } from './steps/traces/0150-trace-contexts.ts'
import { operatorEndpoints } from './steps/webhooks/0094-operator-endpoints.ts'
import { fewDeliveries } from './steps/webhooks/0153-few-deliveries.ts'

const MIGRATION_TABLE = 'kysely_migration'

/** Name → statements, in the order of the names. Never edit a released migration; add a new one. */
const STEPS: Record<string, (flavour: Flavour) => string[]> = {
  '0001-instances': instancesTables,
  '0002-messages': messagesTables,
  '0003-events': eventsTables,
  '0004-secrets': secretsTables,
  '0005-panel': panelTables,
  '0006-nodes': nodesTables,
  '0007-health': healthTables,
  '0008-between-nodes': betweenNodesTables,
  '0009-index-order': indexOrder,
  '0010-prepared-messages': preparedMessages,
  '0011-settled-messages': settledMessages,
  '0012-incoming-messages': incomingMessages,
  '0014-nodes-differ': nodesDiffer,
  '0020-endpoints': endpoints,
  '0030-event-numbers': eventNumbers,
  '0031-connection-reports': connectionReports,
  '0050-api-keys': apiKeys,
  '0051-audit': audit,
  '0052-accounts': accounts,
  '0060-alerts': alertsTables,
  '0070-media': mediaTables,
  '0071-files-of-messages': filesOfMessages,
  '0072-received-files': receivedFiles,
  '0080-conversations': conversations,
  '0081-references': references,
  '0082-changes-of-messages': changesOfMessages,
  '0084-directory': directory,
  '0085-chat-order': chatOrder,
  '0086-pace': pace,
  '0090-account-identities': accountIdentities,
  '0091-number-checks': numberChecks,
  '0092-due-groups': dueGroups,
  '0092-files-from-urls': filesFromUrls,
  '0094-operator-endpoints': operatorEndpoints,
  '0110-handouts': handouts,
  '0130-settings-of-nodes': settingsOfNodes,
  '0141-proxies': proxies,
  '0142-passkeys': passkeys,
  '0143-calls': calls,
  '0144-same-number': sameNumber,
  '0150-trace-contexts': traceContexts,
  '0151-fetches-by-instance': fetchesByInstance,
  '0152-scheduled-commands': scheduledCommands,
  '0153-few-deliveries': fewDeliveries,
  '0154-makers-of-links': makersOfLinks,
}

/**
 * Migrates the database to the current schema. If several processes start at the same time, they take turns.
 * @throws ForeignDatabase, NewerSchema, WrongMasterKey or KeyRotationUnfinished before anything is written
 */
export async function migrate(db: Kysely<Database>, kind: DatabaseKind, keyCheck: KeyCheck): Promise<void> {
  await refuseIncompatible(db, kind)
  await keyCheck.verify(db, kind)
  await applyMissingSteps(db, kind, keyCheck)
  await keyCheck.verify(db, kind)
}

/**
 * Does not check the master key: on a database that has data, no step needs it. All steps are one transaction, except on a
 * shared database that has data. There each step is its own transaction, because other nodes use the tables, and a commit
 * releases their locks.
 */
export async function applyMissingSteps(db: Kysely<Database>, kind: DatabaseKind, keyCheck: KeyCheck): Promise<void> {
  const migrator = new Migrator({
    db,
    migrationTableName: MIGRATION_TABLE,
    provider: { getMigrations: async () => migrations(FLAVOURS[kind], keyCheck) },
  })
  const isStepwise = DIALECTS[kind].isShared && (await isMigrated(db, kind))
  for (;;) {
    const { error, results = [] } = await (isStepwise ? migrator.migrateUp() : migrator.migrateToLatest())
    if (error !== undefined) throw error
    if (!isStepwise || results.length === 0) return
  }
}

function migrations(flavour: Flavour, keyCheck: KeyCheck): Record<string, Migration> {
  const all: Record<string, Migration> = {}
  for (const [name, tables] of Object.entries(STEPS)) {
    all[name] = {
      async up(db) {
        for (const statement of tables(flavour)) await sql.raw(statement).execute(db)
        if (name === '0004-secrets') await keyCheck.write(db)
      },
    }
  }
  return all
}

/** Writes nothing. @throws ForeignDatabase or NewerSchema */
export async function refuseIncompatible(db: Kysely<Database>, kind: DatabaseKind): Promise<void> {
  await refuseForeign(db, kind, { first: Object.keys(STEPS)[0]!, table: MIGRATION_TABLE })
  await refuseNewerSchema(db, kind)
}

/** False for an empty database. */
export async function isMigrated(db: Kysely<Database>, kind: DatabaseKind): Promise<boolean> {
  return (await listApplied(db, kind)).length > 0
}

/** The names of the migrations that were not applied yet. Writes nothing. */
export async function findMissingSteps(db: Kysely<Database>, kind: DatabaseKind): Promise<string[]> {
  const applied = new Set(await listApplied(db, kind))
  return Object.keys(STEPS).filter(name => !applied.has(name))
}

/** The migrations that the next start will apply to data of an older version. None for a database without data. Writes nothing. */
export async function findUpgrade(db: Kysely<Database>, kind: DatabaseKind): Promise<string[]> {
  return (await isMigrated(db, kind)) ? findMissingSteps(db, kind) : []
}

async function refuseNewerSchema(db: Kysely<Database>, kind: DatabaseKind): Promise<void> {
  const unknown = (await listApplied(db, kind)).filter(name => !(name in STEPS))
  if (unknown.length > 0) throw new NewerSchema(unknown)
}

async function listApplied(db: Kysely<Database>, kind: DatabaseKind): Promise<string[]> {
  if (!(await listTables(db, kind)).includes(MIGRATION_TABLE)) return []
  const { rows } = await sql<{ name: string }>`select name from ${sql.table(MIGRATION_TABLE)}`.execute(db)
  return rows.map(row => row.name)
}
