// Returns the space of erased messages to the disk while the service is stopped. docs/operations.md describes when.
import { BadSettings, readSettings } from '../config.ts'
import { vacuum } from '../store/engine/sqlite/vacuum.ts'
import { StoreUnusable } from '../store/errors.ts'

const USAGE = 'usage: pombal vacuum'
const MB = 1_000_000

function run(): void {
  if (process.argv.length > 2) throw new BadSettings([USAGE])
  const { dataDir, databaseUrl } = readSettings(process.env)
  if (databaseUrl !== null) throw new BadSettings(['The data is in PostgreSQL, which vacuums itself.'])
  const { file, bytesBefore, bytesAfter } = vacuum(dataDir)
  process.stdout.write(`${file}: ${(bytesBefore / MB).toFixed(1)} MB before, ${(bytesAfter / MB).toFixed(1)} MB now.\n`)
}

process.umask(0o077)
try {
  run()
} catch (error) {
  if (!(error instanceof BadSettings || error instanceof StoreUnusable)) throw error
  process.stderr.write(`The database was not vacuumed: ${error.message}\n`)
  process.exitCode = 1
}
