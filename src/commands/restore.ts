// Replaces the SQLite database with a backup while the service is stopped. docs/backup.md describes the consequences.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { BadSettings, readSettings, type Settings } from '../config.ts'
import { findMasterKey } from '../keys.ts'
import { restore } from '../store/engine/sqlite/restore.ts'
import { isForOperator, onePath } from './for-operator.ts'

const USAGE = 'usage: pombal restore FILE'

/** The master key. Null if it is missing: it may be copied to its place after the restore. */
function knownKey(settings: Settings, file: string): Buffer | null {
  return settings.masterKey !== null || existsSync(file) ? findMasterKey(settings) : null
}

async function run(): Promise<void> {
  const backup = onePath(USAGE)
  const settings = readSettings(process.env)
  const { dataDir, databaseUrl } = settings
  if (databaseUrl !== null)
    throw new BadSettings(['The data is in PostgreSQL: restore it as docs/backup.md describes.'])
  if (!existsSync(dataDir))
    throw new BadSettings([`${dataDir} does not exist: create it, and copy the master key into it.`])
  const keyFile = join(dataDir, 'master.key')
  const masterKey = knownKey(settings, keyFile)
  const { former, hasTwoKeys } = await restore({ dataDir, backup, masterKey, now: new Date() })
  if (former.length > 0) process.stdout.write(`The former database is now ${former.join(', ')}.\n`)
  if (hasTwoKeys) {
    process.stdout.write(
      `Restored. The backup was made during a rotation of the master key and needs two keys. Put the one before the rotation into ${keyFile} ` +
        `and the one after it into ${keyFile}.next, or into MASTER_KEY and NEW_MASTER_KEY. Then run "pombal rotate-keys" and start the service.\n`,
    )
    return
  }
  process.stdout.write(
    masterKey === null
      ? `Restored. Before you start the service, copy the master key of this backup to ${keyFile}.\n`
      : 'Restored. Start the service.\n',
  )
}

process.umask(0o077)
try {
  await run()
} catch (error) {
  if (!isForOperator(error)) throw error
  process.stderr.write(error.message === USAGE ? `${USAGE}\n` : `Nothing was restored: ${error.message}\n`)
  process.exitCode = 1
}
