// Copies the SQLite database while the service runs. docs/backup.md describes what a backup contains and what it omits.
import { mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { BadSettings, readSettings } from '../config.ts'
import { giveIfInside } from '../store/engine/file-owner.ts'
import { backUp, eraseLeftDrafts } from '../store/engine/sqlite/backup.ts'
import { isForOperator, onePath } from './for-operator.ts'

const USAGE = 'usage: pombal backup FOLDER'
const PRIVATE_FOLDER = 0o700
const MB = 1_000_000

async function run(): Promise<void> {
  const folder = onePath(USAGE)
  const { dataDir, databaseUrl, masterKey } = readSettings(process.env)
  if (databaseUrl !== null)
    throw new BadSettings(['The data is in PostgreSQL: back it up with its own tools, as docs/backup.md describes.'])
  mkdirSync(folder, { recursive: true, mode: PRIVATE_FOLDER })
  giveIfInside(dataDir, folder)
  const now = new Date()
  try {
    eraseLeftDrafts(folder, now)
  } catch (error) {
    if (!isForOperator(error)) throw error
    process.stderr.write(`The files left by a killed backup were not erased: ${error.message}\n`)
  }
  const { file, bytes } = await backUp(dataDir, now, stamp => resolve(folder, `pombal-${stamp}.db`))
  giveIfInside(dataDir, file)
  const key = masterKey === null ? join(dataDir, 'master.key') : 'MASTER_KEY'
  process.stdout.write(
    `${file}, ${(bytes / MB).toFixed(1)} MB.\n` +
      `The backup contains neither the master key (${key}) nor the admin key. It cannot be read without the master key: keep a copy of that key elsewhere.\n`,
  )
}

process.umask(0o077)
try {
  await run()
} catch (error) {
  if (!isForOperator(error)) throw error
  process.stderr.write(`No backup was made: ${error.message}\n`)
  process.exitCode = 1
}
