// Stops a number here and writes its session as a folder for Baileys. docs/migrating.md describes when and how.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { BadSettings, readSettings } from '../config.ts'
import { syncFolder } from '../store/engine/sync-to-disk.ts'
import type { TransferredRow } from '../store/transfers/transfers.ts'
import { writeSession } from '../whatsapp/baileys/transfer/session.ts'
import { isForOperator } from './for-operator.ts'
import { auditEntry, openStoreOf } from './sessions/open-store.ts'

const USAGE = 'usage: pombal export-session INSTANCE FOLDER'
const PRIVATE_FOLDER = 0o700

/** Complete or absent: the folder gets its name last. */
function writeFolder(folder: string, rows: readonly TransferredRow[]): number {
  const parent = dirname(folder)
  mkdirSync(parent, { recursive: true, mode: PRIVATE_FOLDER })
  const temporary = mkdtempSync(join(parent, '.pombal-export-'))
  try {
    let files = 0
    for (const { name, json } of writeSession(rows)) {
      writeFileSync(join(temporary, name), json, { flush: true })
      files += 1
    }
    syncFolder(temporary)
    renameSync(temporary, folder)
    syncFolder(parent)
    return files
  } catch (error) {
    rmSync(temporary, { recursive: true, force: true })
    throw error
  }
}

async function run(): Promise<void> {
  const [id, name, ...more] = process.argv.slice(2)
  if (id === undefined || name === undefined || more.length > 0) throw new BadSettings([USAGE])
  const folder = resolve(name)
  if (existsSync(folder) && readdirSync(folder).length > 0)
    throw new BadSettings([`${folder} is not empty: name a new folder.`])
  const store = await openStoreOf(readSettings(process.env))
  try {
    const exported = await store.audit.during(auditEntry('exportSession', id, {}), () =>
      store.transfers.export(id, store.clock.now()),
    )
    if (exported.kind === 'not_linked') throw new BadSettings([`No WhatsApp number is linked to an instance ${id}.`])
    if (exported.kind === 'running') throw new BadSettings([`A node runs ${id}: stop all nodes first.`])
    const files = writeFolder(folder, exported.rows)
    process.stdout.write(
      `${folder}: the session of ${exported.phone} in ${files} files. Whoever has them has the account: move them, leave no copy.\n` +
        `${id} is stopped. Connecting it again needs a confirmation: two programs with one session destroy it.\n`,
    )
  } finally {
    await store.close()
  }
}

process.umask(0o077)
try {
  await run()
} catch (error) {
  if (!isForOperator(error)) throw error
  process.stderr.write(`No folder was written: ${error.message}\n`)
  process.exitCode = 1
}
