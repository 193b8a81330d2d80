// Takes over numbers that another program of Baileys has linked, without a phone. docs/migrating.md describes when and how.
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { newToken, newWebhookSecret } from '../api/admin/secrets.ts'
import { BadSettings, readSettings } from '../config.ts'
import { newInstanceId } from '../domain/ids.ts'
import type { Store } from '../store/store.ts'
import type { ImportOutcome } from '../store/transfers/transfers.ts'
import type { Session } from '../whatsapp/baileys/transfer/session.ts'
import { auditEntry, isForOperator, openStoreOf } from './sessions/open-store.ts'
import { type FoundSession, findSessions } from './sessions/read-folder.ts'
import { ago, table } from './sessions/table.ts'
import { TokenFile } from './sessions/token-file.ts'

const USAGE = 'usage: pombal import-sessions FOLDER… [--dry-run] [--stopped] [--tokens FILE]'
/** A program that wrote within this time may still be running. One that receives nothing writes nothing for hours. */
const RECENT_MS = 60_000

const MAX_NAME_CHARACTERS = 100

interface UsableSession extends FoundSession {
  content: Session
}

function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: { 'dry-run': { type: 'boolean' }, stopped: { type: 'boolean' }, tokens: { type: 'string' } },
    })
  } catch {
    throw new BadSettings([USAGE])
  }
}

function isUsable(found: FoundSession): found is UsableSession {
  return typeof found.content !== 'string'
}

function show(found: readonly FoundSession[], now: number): void {
  const header = ['Name', 'Number', 'Keys', 'Unreadable', 'Last write', 'Still running there?']
  const rows = found.filter(isUsable).map(({ name, content: { phone, keys, unreadable }, writtenAt }) => {
    const age = now - (writtenAt ?? 0)
    const running = age < RECENT_MS ? 'maybe: written just now' : 'cannot be seen'
    return [name, phone, String(keys), String(unreadable), ago(age), running]
  })
  if (rows.length > 0) say(table([header, ...rows]))
  for (const { folder, content } of found) if (typeof content === 'string') say(`${folder}: ${content}\n`)
}

async function importOne(store: Store, tokens: TokenFile, session: UsableSession): Promise<ImportOutcome> {
  const id = newInstanceId()
  const token = newToken()
  const name = instanceName(session.name)
  const { phone, rows } = session.content
  const known = await store.transfers.findLinked(phone)
  if (known !== null) return { kind: 'known', ...known }
  // First, because the token exists nowhere else. If this process dies before the commit, the line belongs to no instance.
  tokens.add({ instanceId: id, name, phone, token })
  const instance = {
    id,
    name,
    phone,
    rows,
    tokenDigest: createHash('sha256').update(token).digest(),
    webhookSecret: newWebhookSecret(),
    webhookUrl: null,
  }
  return store.audit.during(auditEntry('importSession', id, { name }), () =>
    store.transfers.import(instance, store.clock.now()),
  )
}

/** @returns whether all of them were imported */
async function importAll(store: Store, tokens: TokenFile, sessions: readonly UsableSession[]): Promise<boolean> {
  let isComplete = true
  for (const session of sessions) {
    const { name, phone } = { ...session, ...session.content }
    const outcome = await importOne(store, tokens, session)
    if (outcome.kind === 'imported') {
      say(`Imported ${name} (${phone}) as ${outcome.id}.
`)
      continue
    }
    isComplete = false
    say(`${session.folder}: ${phone} is linked already, as ${outcome.name} (${outcome.id}). Delete that instance first.
`)
  }
  return isComplete
}

/** Names as the API allows them. */
function instanceName(name: string): string {
  const cleaned = name
    .toWellFormed()
    .replaceAll(/\p{Cc}/gu, '')
    .trim()
  return [...cleaned].slice(0, MAX_NAME_CHARACTERS).join('').trim() || 'WhatsApp'
}

/** Sessions that may be in use are refused, unless the operator says that the other program is stopped. */
function refuseRunning(found: FoundSession[], now: number): FoundSession[] {
  return found.map(session => {
    const age = now - (session.writtenAt ?? 0)
    if (!isUsable(session) || age >= RECENT_MS) return session
    const content = `It was written ${ago(age)}: stop the other program for good, then repeat this with --stopped.`
    return { ...session, content }
  })
}

function say(text: string): void {
  process.stdout.write(text)
}

/** @returns whether every folder was usable, and imported */
async function run(): Promise<boolean> {
  const { values, positionals } = readArguments()
  if (positionals.length === 0) throw new BadSettings([USAGE])
  const settings = readSettings(process.env)
  const all = positionals.flatMap(findSessions)
  show(all, Date.now())
  if (values['dry-run']) return all.every(isUsable)
  const found = values.stopped ? all : refuseRunning(all, Date.now())
  for (const [at, { folder, content }] of found.entries())
    if (typeof content === 'string' && isUsable(all[at]!)) say(`${folder}: ${content}\n`)
  const usable = found.filter(isUsable)
  if (usable.length === 0) return false
  const store = await openStoreOf(settings)
  try {
    const tokens = new TokenFile(values.tokens ?? join(settings.dataDir, 'imported-tokens.jsonl'))
    // Of two copies of a session the one that was written last is imported.
    const isComplete = await importAll(
      store,
      tokens,
      usable.sort((one, other) => (other.writtenAt ?? 0) - (one.writtenAt ?? 0)),
    )
    tokens.close()
    say(`The tokens are in ${tokens.path}. Start the service, then connect each instance.\n`)
    return isComplete && usable.length === found.length
  } finally {
    await store.close()
  }
}

process.umask(0o077)
try {
  if (!(await run())) process.exitCode = 1
} catch (error) {
  if (!isForOperator(error)) throw error
  process.stderr.write(`Nothing was imported: ${error.message}\n`)
  process.exitCode = 1
}
