import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { START_WITHIN_MS } from '../../deadlines.ts'
import { killOnExit } from '../../kill-on-exit.ts'
import { until } from '../../until.ts'

/** Debian's program (package bsdutils) that runs another one in a terminal. */
const SCRIPT = '/usr/bin/script'
const PROGRAM = join(import.meta.dirname, '../../../bin/pombal.js')

test.skipIf(!existsSync(SCRIPT))(
  'on a terminal the log has no JSON lines (skipped without the program script)',
  async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'pombal-terminal-'))
    const command = `exec '${process.execPath}' '${PROGRAM}'`
    const child = spawn(SCRIPT, ['-qfec', command, '/dev/null'], {
      env: { PATH: process.env['PATH'], DATA_DIR: dataDir, PORT: '0', LOG_LEVEL: 'debug' },
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    killOnExit(child)
    let output = ''
    child.stdout.setEncoding('utf8').on('data', text => {
      output += text
    })
    const ended = new Promise(resolve => child.once('exit', resolve))
    await until('the end of the start', () => output.includes('app.started'), START_WITHIN_MS)
    child.kill('SIGTERM')
    await ended
    rmSync(dataDir, { recursive: true, force: true })
    expect(output).toMatch(/^\[\d\d:\d\d:\d\d\.\d{3}\] INFO: app\.started \{"version":/m)
    expect(output).not.toMatch(/^\{/m)
  },
)
