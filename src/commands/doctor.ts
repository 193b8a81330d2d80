// Checks what a start needs, without changing anything, and names the remedy of each problem.
import { BadSettings, readSettings, type Settings } from '../config.ts'
import { CHECKS, examineDatabase, type Finding } from './doctor/checks.ts'

const SIGNS = { ok: 'ok     ', warning: 'WARNING', problem: 'PROBLEM' } as const

function print(name: string, { state, text }: Finding): void {
  process.stdout.write(`${SIGNS[state]}  ${name.padEnd(12)} ${text}\n`)
}

function readSettingsOrReport(): Settings | null {
  try {
    return readSettings(process.env)
  } catch (error) {
    if (!(error instanceof BadSettings)) throw error
    for (const text of error.problems) print('Settings', { state: 'problem', text })
    return null
  }
}

/** @returns the number of problems */
async function run(): Promise<number> {
  const settings = readSettingsOrReport()
  if (settings === null) return 1
  let problems = 0
  let examined: ReturnType<typeof examineDatabase> | undefined
  const examine = () => {
    examined ??= examineDatabase(settings)
    return examined
  }
  for (const [name, check] of CHECKS) {
    for (const finding of await check(settings, examine)) {
      print(name, finding)
      if (finding.state === 'problem') problems += 1
    }
  }
  return problems
}

const problems = await run()
process.stdout.write(
  problems === 0 ? '\nNothing keeps Pombal from running.\n' : '\nSolve the problems above, then run this again.\n',
)
process.exitCode = problems === 0 ? 0 : 1
