import { flushCompileCache } from 'node:module'
import { pino, stdSerializers } from 'pino'
import { type App, STOP_WITHIN_MS, startApp } from './app.ts'
import { BadSettings, readSettings, type Settings } from './config.ts'
import { findAdminKeyFile } from './keys.ts'
import { logDestination } from './log-destination.ts'
import { explainListening } from './ops/listening.ts'
import { StoreUnavailable, StoreUnusable } from './store/errors.ts'

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

/** @returns sentences for the operator, or null if the error is not one that an operator can fix */
function problemsOf(error: unknown, settings: Settings): readonly string[] | null {
  if (error instanceof BadSettings) return error.problems
  const { message, syscall, port = settings.port } = error as NodeJS.ErrnoException & { port?: number }
  const setting = port === settings.metricsPort ? 'METRICS_PORT' : 'PORT'
  const sentence = explainListening(error, { host: settings.host, port, setting })
  if (sentence !== null) return [sentence]
  // An error of the operating system. Its message names the folder, file or address.
  if (syscall !== undefined) return [message]
  if (error instanceof StoreUnusable || error instanceof StoreUnavailable) return [message]
  return null
}

/** Goes to standard error, because standard output contains only the log. */
function greet(app: App, settings: Settings): void {
  const data = settings.databaseUrl ? 'PostgreSQL (DATABASE_URL)' : settings.dataDir
  const adminKeyFile = findAdminKeyFile(settings)
  const adminKey = adminKeyFile === null ? '$ADMIN_KEY' : `$(cat '${adminKeyFile}')`
  process.stderr.write(
    [
      '',
      `  Pombal ${settings.version} listens on ${app.url}`,
      `  Panel      ${app.url}`,
      `  Data       ${data}`,
      `  Admin key  ${adminKeyFile ?? 'the environment variable ADMIN_KEY'}`,
      `  API        ${app.url}/docs`,
      ...(settings.sandbox ? ['  Sandbox    on (in production, set SANDBOX=off)'] : []),
      ...(app.metricsUrl ? [`  Metrics    ${app.metricsUrl}`] : []),
      ...settings.misspelled.map(sentence => `  Warning    ${sentence}`),
      '',
      '  Next: open the panel and sign in with the admin key. Or create an instance from here:',
      '',
      `    curl -s ${app.url}/admin/v1/instances -H "Authorization: Bearer ${adminKey}" \\`,
      `      -H 'Content-Type: application/json' -d '{"name":"first","kind":"${settings.sandbox ? 'sandbox' : 'whatsapp'}"}'`,
      '',
      '',
    ].join('\n'),
  )
}

/** Removes the fields in which PostgreSQL quotes the failed row, because the row may contain secrets. */
function errorWithoutRow(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const { detail, where, internalQuery, ...rest } = stdSerializers.err(error)
  return rest
}

// A failed write to an output must not stop the service.
for (const output of [process.stdout, process.stderr]) output.on('error', () => undefined)
// Only the user who runs the service may read the data folder: files are created with 0600, folders with 0700.
process.umask(0o077)
const settings = readSettingsOrExit()
// Programs read JSON. A terminal has a person in front of it.
const format = process.stdout.isTTY ? (await import('./log-for-people.ts')).logForPeople() : undefined
const logTo = logDestination(process.stdout, format)
const logger = pino({ level: settings.logLevel, serializers: { err: errorWithoutRow } }, logTo)

process.on('uncaughtException', error => {
  logger.fatal({ err: error }, 'app.crashed')
  process.exit(1)
})

let app: App | null = null
let draining: AbortController | null = null
/**
 * A second signal skips the rest of the drain time. A longer stop is cut off, which is safe because the store is consistent at every
 * moment.
 */
async function stop(signal: NodeJS.Signals): Promise<void> {
  if (draining !== null) return draining.abort()
  draining = new AbortController()
  const cutOffAt = performance.now() + STOP_WITHIN_MS
  logger.info({ signal }, 'app.stopping')
  setTimeout(() => {
    logger.warn('app.stop_cut_off')
    process.exit(0)
  }, STOP_WITHIN_MS).unref()
  await app?.drain(draining.signal)
  await app?.close(cutOffAt - performance.now())
  logger.info('app.stopped')
  process.exit(0)
}
// Installed before the start, so that it can be stopped too.
process.on('SIGTERM', stop)
process.on('SIGINT', stop)

try {
  app = await startApp(settings, logger, logTo)
} catch (error) {
  const problems = problemsOf(error, settings)
  if (problems) exitWith(problems)
  throw error
}
// Written now, because a killed process cannot write the compile cache when it ends.
flushCompileCache()
logger.info({ version: settings.version, url: app.url }, 'app.started')
for (const sentence of settings.misspelled) logger.warn({ reason: sentence }, 'app.setting_misspelled')
greet(app, settings)
