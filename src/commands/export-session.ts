// Stops a number here and writes its session as a folder for Baileys. docs/migrating.md describes when and how.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { BadSettings, readSettings } from '../config.ts'
import { syncFolder } from '../store/engine/sync-to-disk.ts'
import type { Store } from '../store/store.ts'
import type { TransferredRow } from '../store/transfers/transfers.ts'
import { writeSession } from '../whatsapp/baileys/transfer/session.ts'
import { isForOperator } from './for-operator.ts'
import { auditEntry, openStoreOf } from './sessions/open-store.ts'

const USAGE = 'usage: pombal export-session INSTANCE FOLDER'
const PRIVATE_FOLDER = 0o700

/**
 * Creates a folder beside the one to write. When it is complete, it gets the name of that folder. Folders that killed
 * exports of this instance have left are erased, because they contain the session of the account.
 */
function makeDraft(folder: string, id: string): string {
  const parent = dirname(folder)
  const prefix = `.pombal-export-${id}-`
  mkdirSync(parent, { recursive: true, mode: PRIVATE_FOLDER })
  for (const name of readdirSync(parent).filter(name => name.startsWith(prefix)))
    rmSync(join(parent, name), { recursive: true })
  return mkdtempSync(join(parent, prefix))
}

function writeFiles(draft: string, folder: string, rows: readonly TransferredRow[]): number {
  let files = 0
  for (const { name, json } of writeSession(rows)) {
    writeFileSync(join(draft, name), json, { flush: true })
    files += 1
  }
  syncFolder(draft)
  renameSync(draft, folder)
  syncFolder(dirname(folder))
  return files
}

/** Stops the instance. @throws BadSettings if it cannot be exported */
async function stop(store: Store, id: string) {
  const exported = await store.audit.during(auditEntry('exportSession', id, {}), () =>
    store.transfers.export(id, store.clock.now()),
  )
  if (exported.kind === 'not_linked')
    throw new BadSettings([`No WhatsApp number is linked to an instance ${id}, or its logout was requested.`])
  if (exported.kind === 'running') throw new BadSettings([`A node runs ${id}: stop all nodes first.`])
  return exported
}

/** Creates the folder first: if that fails, the instance is not stopped. */
async function exportSession(store: Store, id: string, folder: string): Promise<void> {
  const draft = makeDraft(folder, id)
  try {
    const { phone, rows } = await stop(store, id)
    try {
      const files = writeFiles(draft, folder, rows)
      say(
        `${folder}: the session of ${phone} in ${files} files. They give full access to the account: move them, and leave no copy.`,
      )
    } catch (error) {
      const reason = (error as Error).message
      throw new BadSettings([`${reason}. But ${id} is stopped: run this again, or connect the instance again.`])
    }
    say(`${id} is stopped. Connecting it again needs a confirmation: two programs with one session destroy it.`)
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
}

function say(text: string): void {
  process.stdout.write(`${text}\n`)
}

async function run(): Promise<void> {
  const [id = '', name = '', ...more] = process.argv.slice(2)
  if (!/^\w+$/.test(id) || name === '' || name.startsWith('-') || more.length > 0) throw new BadSettings([USAGE])
  const folder = resolve(name)
  if (existsSync(folder) && readdirSync(folder).length > 0)
    throw new BadSettings([`${folder} is not empty: name a new folder.`])
  const store = await openStoreOf(readSettings(process.env))
  try {
    await exportSession(store, id, folder)
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
