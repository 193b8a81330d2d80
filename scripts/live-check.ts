import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { readSettings, type Settings } from '../src/config.ts'
import { silenceSignalConsole } from '../src/whatsapp/baileys/signal/quiet-libsignal.ts'
import type { Network } from '../src/whatsapp/baileys/socket-options.ts'
import { Account } from './live-check/account.ts'
import { runChecks } from './live-check/checks.ts'
import { Findings } from './live-check/findings.ts'
import { createTerminalOperator } from './live-check/operator.ts'
import { checkRedacted, compare, type Report, toText } from './live-check/report.ts'
import { checkSimulator } from './live-check/simulated.ts'

/** Compares the behaviour of the simulator with that of WhatsApp. docs/live-check.md describes how to use it. */

const USAGE =
  'usage: npm run live-check -- [--dry-run] [--passkey] [--second NUMBER] [--data-dir FOLDER] [--report FOLDER]'
/** Receipts of an active phone arrive within a second or two. */
const QUIET_MS = 8_000
const NUMBER = /^[1-9][0-9]{6,14}$/

interface Arguments {
  dryRun: boolean
  passkey: boolean
  second: string | undefined
  dataDir: string | undefined
  reportDir: string
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

function readArguments(): Arguments {
  const { values } = parseArgs({
    options: {
      'dry-run': { type: 'boolean', default: false },
      passkey: { type: 'boolean', default: false },
      second: { type: 'string' },
      'data-dir': { type: 'string' },
      report: { type: 'string', default: '.' },
    },
  })
  const second = values.second
  if (second !== undefined && !NUMBER.test(second)) throw new TypeError('--second must be a number, digits only.')
  const { passkey } = values
  return { dryRun: values['dry-run'], passkey, second, dataDir: values['data-dir'], reportDir: values.report }
}

/** Runs the checks against WhatsApp, with a person at the terminal. @returns false if the check ended early; `findings` then has the results so far */
async function checkWhatsapp(
  given: Arguments,
  whatsapp: Settings['whatsapp'],
  findings: Findings,
  secrets: Set<string>,
): Promise<boolean> {
  const network: Network = whatsapp.url ? { kind: 'simulated', url: whatsapp.url } : { kind: 'whatsapp' }
  const dataDir = given.dataDir ?? mkdtempSync(join(tmpdir(), 'pombal-live-check-'))
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  const stopped = new AbortController()
  const { signal } = stopped
  for (const end of ['SIGINT', 'close'] as const) terminal.on(end, () => stopped.abort())
  for (const end of ['SIGINT', 'SIGTERM'] as const) process.on(end, () => stopped.abort())
  try {
    let second = given.second ?? ''
    while (!NUMBER.test(second)) {
      const question = 'The number of the second phone (digits only, with the country code): '
      second = (await terminal.question(question, { signal })).trim()
    }
    const operator = createTerminalOperator(terminal, say, { second }, signal)
    const account = await Account.open({
      dataDir,
      network,
      version: whatsapp.version ?? undefined,
      passkeys: given.passkey,
    })
    try {
      const { passkey } = given
      await runChecks({ account, operator, second, passkey, findings, secrets, quietMs: QUIET_MS, say, signal })
      return true
    } finally {
      await account.close()
    }
  } catch (error) {
    say(`The check ended early: ${(error as Error).message}`)
    return false
  } finally {
    terminal.close()
    if (given.dataDir === undefined) rmSync(dataDir, { recursive: true, force: true })
  }
}

function versionOf(packageFile: string): string {
  return JSON.parse(readFileSync(packageFile, 'utf8')).version
}

function writeReport(report: Report, secrets: ReadonlySet<string>, folder: string): void {
  const json = `${JSON.stringify(report, null, 2)}\n`
  const text = toText(report)
  checkRedacted(json + text, secrets)
  mkdirSync(folder, { recursive: true })
  const file = join(folder, `live-check-${report.at.replace(/[:.]/g, '-')}`)
  writeFileSync(`${file}.json`, json)
  writeFileSync(`${file}.txt`, text)
  say(`\n${text}\nWritten to ${file}.txt and ${file}.json. They contain no number, name, key or text.`)
}

async function run(given: Arguments): Promise<boolean> {
  const { whatsapp: settings } = readSettings(process.env)
  const secrets = new Set<string>()
  say('Checking the simulator:')
  const { passkey } = given
  const checks = { say: (line: string) => say(`  ${line}`), secrets, passkey }
  const simulator = await checkSimulator(checks)
  say(given.dryRun ? 'Checking the simulator again, instead of WhatsApp:' : 'Checking WhatsApp:')
  let whatsapp = new Findings()
  let complete = true
  if (given.dryRun) whatsapp = await checkSimulator(checks)
  else complete = await checkWhatsapp(given, settings, whatsapp, secrets)
  const report: Report = {
    pombal: versionOf(join(import.meta.dirname, '../package.json')),
    baileys: versionOf(fileURLToPath(import.meta.resolve('baileys/package.json'))),
    mode: given.dryRun ? 'dry-run' : settings.url ? 'simulated' : 'live',
    at: new Date().toISOString(),
    complete,
    ...compare(simulator, whatsapp),
    durations: whatsapp.durations,
  }
  writeReport(report, secrets, given.reportDir)
  return complete && report.differences.length === 0
}

let given: Arguments
try {
  given = readArguments()
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n${USAGE}\n`)
  process.exit(2)
}
silenceSignalConsole()
// Exits explicitly, because Baileys' queries on closed sockets keep timers for a while.
process.exit((await run(given)) ? 0 : 1)
