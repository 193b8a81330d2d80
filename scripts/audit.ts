// Fails if a dependency has a known vulnerability. Prints a note and passes if the registry cannot be asked.
import { spawnSync } from 'node:child_process'

interface Report {
  message?: string
  vulnerabilities?: Record<string, { name: string; severity: string; range: string }>
}

/** @returns null when npm printed no report */
function parseReport(text: string): Report | null {
  try {
    return JSON.parse(text) as Report
  } catch {
    return null
  }
}

function evaluate(report: Report | null): { passed: boolean; lines: string[] } {
  if (!report?.vulnerabilities) {
    const why = report?.message ?? 'npm gave no report'
    return { passed: true, lines: [`Not audited: the registry did not answer (${why.split(' - ')[0]}).`] }
  }
  const found = Object.values(report.vulnerabilities)
  if (found.length === 0) return { passed: true, lines: ['No dependency has a known vulnerability.'] }
  return { passed: false, lines: found.map(({ name, severity, range }) => `${severity}: ${name} ${range}`) }
}

const { stdout } = spawnSync('npm', ['audit', '--json'], { encoding: 'utf8' })
const { passed, lines } = evaluate(parseReport(stdout ?? ''))
for (const line of lines) process.stdout.write(`${line}\n`)
if (!passed) process.exitCode = 1
