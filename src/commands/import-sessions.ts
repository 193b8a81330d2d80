// Takes over numbers that another program based on Baileys has linked, without a phone. docs/migrating.md describes when and how.
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { newToken, newWebhookSecret } from '../api/admin/secrets.ts'
import { BadSettings, readSettings } from '../config.ts'
import { newInstanceId } from '../domain/ids.ts'
import { giveIfInside } from '../store/engine/file-owner.ts'
import type { Store } from '../store/store.ts'
import type { ImportOutcome, LinkedInstance } from '../store/transfers/transfers.ts'
import type { Session } from '../whatsapp/baileys/transfer/session.ts'
import { isForOperator } from './for-operator.ts'
import type { Gateway } from './live-sources/live-rows.ts'
import { gatewayNamed, readLive } from './live-sources/live-source.ts'
import { UnreadableSource } from './live-sources/unreadable-source.ts'
import { auditEntry, openStoreOf } from './sessions/open-store.ts'
import { type FoundSession, findInFolder } from './sessions/read-folder.ts'
import { findInFile, isFile, sessionsOf } from './sessions/read-rows.ts'
import { signOfUse } from './sessions/signs-of-use.ts'
import { ago, table } from './sessions/table.ts'
import { TokenFile } from './sessions/token-file.ts'

const USAGE = `usage: pombal import-sessions FOLDER|FILE… [--keys FOLDER] [--dry-run] [--stopped] [--tokens FILE]
       pombal import-sessions --from evolution|waha [NAME…] [the same options]
The second form reads the databases at IMPORT_DATABASE_URL and IMPORT_REDIS_URL.`

const MAX_NAME_CHARACTERS = 100

interface UsableSession extends FoundSession {
  content: Session
}

function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        'dry-run': { type: 'boolean' },
        stopped: { type: 'boolean' },
        tokens: { type: 'string' },
        keys: { type: 'string' },
        from: { type: 'string' },
      },
    })
  } catch {
    throw new BadSettings([USAGE])
  }
}

function isUsable(found: FoundSession): found is UsableSession {
  return typeof found.content !== 'string'
}

function agoOf(writtenAt: number | null, now: number): string {
  return writtenAt === null ? 'unknown' : ago(now - writtenAt)
}

function show(found: readonly FoundSession[], now: number): void {
  const header = ['Name', 'Number', 'Keys', 'Unreadable', 'Last write', 'Still running there?', 'Webhook']
  const rows = found.filter(isUsable).map(session => {
    const { phone, keys, unreadable } = session.content
    const running = signOfUse(session, now)?.shown ?? 'unknown'
    return [
      session.name,
      phone,
      String(keys),
      String(unreadable),
      agoOf(session.writtenAt, now),
      running,
      session.webhookUrl ?? 'none',
    ]
  })
  if (rows.length > 0) say(table([header, ...rows]))
  for (const { place, content } of found) if (typeof content === 'string') say(`${place}: ${content}\n`)
}

async function importOne(store: Store, tokens: TokenFile, session: UsableSession): Promise<ImportOutcome> {
  const id = newInstanceId()
  const token = newToken()
  const name = instanceName(session.name)
  const { phone, rows } = session.content
  const known = await store.transfers.findLinked(phone)
  if (known !== null) return { kind: 'known', ...known }
  // Written first, because the token exists only in memory. After a crash before the commit, the line has no instance.
  tokens.add({ instanceId: id, name, phone, token })
  const instance = {
    id,
    name,
    phone,
    rows,
    tokenDigest: createHash('sha256').update(token).digest(),
    webhookSecret: newWebhookSecret(),
    webhookUrl: session.webhookUrl,
  }
  return store.audit.during(auditEntry('importSession', id, { name }), () =>
    store.transfers.import(instance, store.clock.now()),
  )
}

/** An error after at least one import. */
class PartlyImported extends Error {
  constructor(count: number, tokens: TokenFile, cause: Error) {
    super(
      `Only the numbers above were imported (${count}). Their tokens are in ${tokens.path}. The rest was not imported: ${cause.message} ` +
        'Correct this, then run the command again: it imports the rest.',
    )
  }
}

/**
 * Reports a number that is linked already. An earlier import may have created its instance, which may have been connected
 * since. An exported session must be imported anew.
 */
async function describeLinked(store: Store, tokens: TokenFile, { id, name }: LinkedInstance) {
  const cause = (await store.connections.find(id))?.cause
  const imported = `was imported already, as ${name} (${id})`
  if (cause !== 'exported' && tokens.has(id)) return { isImported: true, text: `${imported}, and is skipped.` }
  const text =
    cause === 'imported'
      ? `${imported}, but its token is not in ${tokens.path}. Name the file that has it with --tokens, or create a new token in the panel.`
      : `is linked already, as ${name} (${id}). Delete that instance first.`
  return { isImported: false, text }
}

/** @returns whether all sessions are imported now. @throws PartlyImported */
async function importAll(store: Store, tokens: TokenFile, sessions: readonly UsableSession[]): Promise<boolean> {
  let isComplete = true
  let count = 0
  try {
    for (const session of sessions) {
      const { name, phone } = { ...session, ...session.content }
      const outcome = await importOne(store, tokens, session)
      if (outcome.kind === 'imported') {
        count += 1
        say(`Imported ${name} (${phone}) as ${outcome.id}.\n`)
      } else {
        const { isImported, text } = await describeLinked(store, tokens, outcome)
        isComplete &&= isImported
        say(`${session.place}: ${phone} ${text}\n`)
      }
    }
  } catch (error) {
    throw count > 0 && isForOperator(error) ? new PartlyImported(count, tokens, error) : error
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
    const sign = isUsable(session) ? signOfUse(session, now) : null
    if (sign === null) return session
    const content = `${sign.reason}: stop the other program for good, then repeat this with --stopped.`
    return { ...session, content }
  })
}

/** Names come from the other program. A terminal would obey control characters in them. */
function say(text: string): void {
  process.stdout.write(text.replaceAll(/[^\P{Cc}\n]/gu, '\uFFFD'))
}

function findInPaths(paths: readonly string[], keysFolder: string | null): FoundSession[] {
  if (paths.length === 0) throw new BadSettings([USAGE])
  if (paths.some(path => path.includes('://')))
    throw new BadSettings(['Other users can read the arguments of a process: set IMPORT_DATABASE_URL instead.'])
  return paths.flatMap(path => (isFile(path) ? findInFile(path, keysFolder) : findInFolder(path)))
}

/** @param wanted the names of the sessions; all sessions if it is empty */
async function findInDatabases(gateway: Gateway, wanted: readonly string[], keysFolder: string | null) {
  const { rows, otherClients } = await readLive(gateway, process.env)
  const found = sessionsOf(rows, gateway, keysFolder).map(session => ({ ...session, otherClients }))
  const missing = wanted.filter(name => !found.some(session => session.name === name))
  if (missing.length > 0) throw new UnreadableSource(`There is no session with the name ${missing.join(', ')}.`)
  if (found.length === 0) throw new UnreadableSource('There is no session.')
  return wanted.length === 0 ? found : found.filter(({ name }) => wanted.includes(name))
}

/** @returns whether every session was usable, and imported */
async function run(): Promise<boolean> {
  const { values, positionals } = readArguments()
  const settings = readSettings(process.env)
  const keysFolder = values.keys ?? null
  const all =
    values.from === undefined
      ? findInPaths(positionals, keysFolder)
      : await findInDatabases(gatewayNamed(values.from), positionals, keysFolder)
  show(all, Date.now())
  if (values['dry-run']) return all.every(isUsable)
  const found = values.stopped ? all : refuseRunning(all, Date.now())
  for (const [at, { place, content }] of found.entries())
    if (typeof content === 'string' && isUsable(all[at]!)) say(`${place}: ${content}\n`)
  const usable = found.filter(isUsable)
  if (usable.length === 0) return false
  const store = await openStoreOf(settings)
  try {
    const tokens = new TokenFile(values.tokens ?? join(settings.dataDir, 'imported-tokens.jsonl'))
    giveIfInside(settings.dataDir, tokens.path)
    // If there are two copies of a session, the one that was written last is imported.
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
  if (error instanceof PartlyImported) process.stderr.write(`${error.message}\n`)
  else if (isForOperator(error) || error instanceof UnreadableSource)
    process.stderr.write(`Nothing was imported: ${error.message}\n`)
  else throw error
  process.exitCode = 1
}
