import { flushCompileCache } from 'node:module'
import { pino, stdSerializers } from 'pino'
import { type App, startApp } from './app.ts'
import { BadSettings, readSettings, type Settings } from './config.ts'
import { logDestination } from './log-destination.ts'
import { StoreUnavailable, StoreUnusable } from './store/errors.ts'
import { containLibraryErrors } from './whatsapp/baileys/library-errors.ts'
import { giveKeysAsObjects } from './whatsapp/baileys/signal/keys-as-objects.ts'
import { silenceSignalConsole } from './whatsapp/baileys/signal/quiet-libsignal.ts'

/** A stop that takes longer is cut off: the store is consistent at every moment. */
const STOP_WITHIN_MS = 9_500

function readSettingsOrExit(): Settings {
  try {
    return readSettings(process.env)
  } catch (error) {
    if (error instanceof BadSettings) exitWith(error.problems)
    throw error
  }
}

function exitWith(problems: readonly string[]): never {
  process.stderr.write(`Pombal cannot start:\n${problems.map(problem => `  - ${problem}\n`).join('')}`)
  process.exit(1)
}

/** What stops a start for a reason that the operator can mend, as sentences. */
function problemsOf(error: unknown, settings: Settings): readonly string[] | null {
  if (error instanceof BadSettings) return error.problems
  const { message, code, syscall, port } = error as NodeJS.ErrnoException & { port?: number }
  if (code === 'EADDRINUSE') {
    const setting = port === settings.metricsPort ? 'METRICS_PORT' : 'PORT'
    return [`Port ${port} of ${settings.host} is taken: set ${setting} to a free one.`]
  }
  // The operating system refuses a folder, a file or an address, and says which.
  if (syscall !== undefined) return [message]
  if (error instanceof StoreUnusable || error instanceof StoreUnavailable) return [message]
  return null
}

/** For people; the standard output holds the log and nothing else. */
function greet(app: App, settings: Settings): void {
  const data = settings.databaseUrl ? 'PostgreSQL (DATABASE_URL)' : settings.dataDir
  process.stderr.write(
    [
      '',
      `  Pombal ${settings.version} listens on ${app.url}`,
      `  Panel      ${app.url}`,
      `  Data       ${data}`,
      `  Admin key  ${app.adminKeyPlace}`,
      `  API        ${app.url}/docs`,
      ...(app.metricsUrl ? [`  Metrics    ${app.metricsUrl}`] : []),
      '',
      '  Next: open the panel and sign in with the admin key. Or make an instance from here:',
      '',
      `    curl -s ${app.url}/admin/v1/instances -H "Authorization: Bearer ${adminKeyInShell(app)}" \\`,
      `      -H 'Content-Type: application/json' -d '{"name":"first","kind":"${settings.sandbox ? 'sandbox' : 'whatsapp'}"}'`,
      '',
      '',
    ].join('\n'),
  )
}

function adminKeyInShell(app: App): string {
  return app.adminKeyPlace.startsWith('the environment') ? '$ADMIN_KEY' : `$(cat '${app.adminKeyPlace}')`
}

/** PostgreSQL shows with an error the row that it is about, and so what is secret in it. */
function errorWithoutRow(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const { detail, where, internalQuery, ...rest } = stdSerializers.err(error)
  return rest
}

// An output that cannot be written is no reason to stop.
for (const output of [process.stdout, process.stderr]) output.on('error', () => undefined)
// What is in the data folder is for the one who runs the service: files are made 0600, folders 0700.
process.umask(0o077)
silenceSignalConsole()
giveKeysAsObjects()
const settings = readSettingsOrExit()
const logger = pino({ level: settings.logLevel, serializers: { err: errorWithoutRow } }, logDestination(process.stdout))

containLibraryErrors(logger, error => {
  logger.fatal({ err: error }, 'app.crashed')
  process.exit(1)
})

let app: App | null = null
let hurry: AbortController | null = null
/** The second signal ends the waiting for balancers. */
async function stop(signal: NodeJS.Signals): Promise<void> {
  if (hurry !== null) return hurry.abort()
  hurry = new AbortController()
  logger.info({ signal }, 'app.stopping')
  setTimeout(() => {
    logger.warn('app.stop_cut_off')
    process.exit(0)
  }, STOP_WITHIN_MS).unref()
  await app?.drain(hurry.signal)
  await app?.close()
  logger.info('app.stopped')
  process.exit(0)
}
// Before the start, which may be stopped too, and before the banner, which supervisors wait for.
process.on('SIGTERM', stop)
process.on('SIGINT', stop)

try {
  app = await startApp(settings, logger)
} catch (error) {
  const problems = problemsOf(error, settings)
  if (problems) exitWith(problems)
  throw error
}
// Before anybody takes it for started: a process that is killed writes nothing at its end.
flushCompileCache()
logger.info({ version: settings.version, url: app.url }, 'app.started')
greet(app, settings)
