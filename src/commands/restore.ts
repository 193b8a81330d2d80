// Replaces the SQLite database with a backup while the service is stopped. docs/backup.md describes the consequences.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { BadSettings, readSettings } from '../config.ts'
import { restore } from '../store/engine/sqlite/backup.ts'
import { StoreUnusable } from '../store/errors.ts'

const USAGE = 'usage: pombal restore FILE'

async function run(): Promise<void> {
  const [file, ...more] = process.argv.slice(2)
  if (file === undefined || more.length > 0) throw new BadSettings([USAGE])
  const { dataDir, databaseUrl, masterKey } = readSettings(process.env)
  if (databaseUrl !== null)
    throw new BadSettings(['The data is in PostgreSQL: restore it as docs/backup.md describes.'])
  if (!existsSync(dataDir))
    throw new BadSettings([`${dataDir} does not exist: create it, and copy the master key into it.`])
  const former = await restore(dataDir, file, new Date())
  if (former !== null) process.stdout.write(`The former database is now ${former}.\n`)
  const key = join(dataDir, 'master.key')
  process.stdout.write(
    masterKey === null && !existsSync(key)
      ? `Restored. Before you start the service, copy the master key of this backup to ${key}.\n`
      : 'Restored. Start the service.\n',
  )
}

process.umask(0o077)
try {
  await run()
} catch (error) {
  if (!(error instanceof BadSettings || error instanceof StoreUnusable)) throw error
  process.stderr.write(`Nothing was restored: ${error.message}\n`)
  process.exitCode = 1
}
