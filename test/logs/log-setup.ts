import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LOG_FOLDER_VARIABLE } from './log-capture.ts'
import { scanLogs } from './log-scan.ts'

const SHOWN = 20

/** Runs once for all test files, whose processes inherit the variable. After the last one, all logs are scanned for secrets. */
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
    console.log(`No secret was logged: searched ${(bytes / 1e6).toFixed(1)} MB of logs for ${secrets} secrets.`)
    rmSync(folder, { recursive: true })
  }
}
