// Returns the space of erased messages to the disk while the service is stopped. docs/operations.md describes when.
import { BadSettings, readSettings } from '../config.ts'
import { vacuum } from '../store/engine/sqlite/vacuum.ts'
import { isForOperator } from './for-operator.ts'

const MB = 1_000_000

function run(): void {
  const { dataDir, databaseUrl } = readSettings(process.env)
  if (databaseUrl !== null) throw new BadSettings(['The data is in PostgreSQL, which vacuums itself.'])
  const { file, bytesBefore, bytesAfter } = vacuum(dataDir)
  process.stdout.write(`${file}: ${(bytesBefore / MB).toFixed(1)} MB before, ${(bytesAfter / MB).toFixed(1)} MB now.\n`)
}

process.umask(0o077)
try {
  run()
} catch (error) {
  if (!isForOperator(error)) throw error
  process.stderr.write(`The database was not vacuumed: ${error.message}\n`)
  process.exitCode = 1
}
