// Moves everything from SQLite to PostgreSQL while the service is stopped. docs/operations.md describes when and how.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { BadSettings, readSettings, type Settings } from '../config.ts'
import { moveToPostgres } from '../store/moving/move-to-postgres.ts'
import { isForOperator } from './for-operator.ts'

const PROGRESS_STEP = 0.05

/** Prints a line for every 5%. */
function createProgress(): (progress: { done: number; total: number; table: string }) => void {
  let shown = -1
  return ({ done, total, table }) => {
    const part = total === 0 ? 1 : done / total
    if (part === shown || (part < 1 && part - shown < PROGRESS_STEP)) return
    shown = part
    say(`${Math.floor(part * 100)}%: ${done} of ${total} rows are in PostgreSQL (${table}).`)
  }
}

function nextSteps({ dataDir, media }: Settings): string {
  const folder = join(dataDir, 'media')
  const files =
    media.place === null && existsSync(folder)
      ? `The files of messages stay in ${folder}: set MEDIA_URL=${pathToFileURL(folder)}.\n`
      : ''
  return `${files}Start the service with these settings. ${join(dataDir, 'pombal.db')} was not changed: keep it until you trust the result.`
}

function say(text: string): void {
  process.stdout.write(`${text}\n`)
}

async function run(): Promise<void> {
  const settings = readSettings(process.env)
  const { dataDir, databaseUrl, masterKey } = settings
  if (databaseUrl === null || masterKey === null)
    throw new BadSettings([
      'Set DATABASE_URL to the new PostgreSQL database, and DATA_DIR to the folder of the SQLite database.',
    ])
  const startedAt = performance.now()
  const outcome = await moveToPostgres({
    dataDir,
    databaseUrl,
    masterKey,
    onProgress: createProgress(),
    onCompare: () => say('All rows are in PostgreSQL. Comparing them now.'),
  })
  const seconds = Math.round((performance.now() - startedAt) / 1000)
  if (outcome.kind === 'already') say('Everything has already been moved.')
  else say(`Moved ${outcome.rows} rows of ${outcome.tables} tables in ${seconds} s. Counts and digests match.`)
  say(nextSteps(settings))
}

process.umask(0o077)
try {
  await run()
} catch (error) {
  if (!isForOperator(error)) throw error
  process.stderr.write(`The data was not moved: ${error.message}\n`)
  process.exitCode = 1
}
