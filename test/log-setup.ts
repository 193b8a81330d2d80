import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LOG_FOLDER_VARIABLE } from './log-book.ts'
import { scanLogs } from './log-scan.ts'

const SHOWN = 20

/** Once for all test files; the processes of the tests inherit the variable. When they are through, all that was logged is read. */
export default function setup(): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'pombal-test-logs-'))
  process.env[LOG_FOLDER_VARIABLE] = folder
  return () => {
    const { violations, bytes, secrets } = scanLogs(folder)
    if (violations.length > 0) {
      throw new Error(
        `Secrets were logged (${violations.length}); all logs are in ${folder}:\n${violations.slice(0, SHOWN).join('\n')}`,
      )
    }
    console.log(`No secret in what was logged: ${secrets} looked for in ${(bytes / 1e6).toFixed(1)} MB.`)
    rmSync(folder, { recursive: true })
  }
}
