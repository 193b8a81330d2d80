import { execFileSync, spawn } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { COMMANDS } from '../../../bin/commands.js'
import { START_WITHIN_MS } from '../../deadlines.ts'
import { killOnExit } from '../../kill-on-exit.ts'
import { runCommand } from '../../sessions/run-command.ts'
import { until } from '../../until.ts'

const PROGRAM = join(import.meta.dirname, '../../../bin/pombal.js')

let dataDir: string
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'pombal-arguments-'))
})
afterEach(() => rmSync(dataDir, { recursive: true }))

const run = (...args: string[]) => runCommand(args, { DATA_DIR: dataDir, TMPDIR: dataDir })

describe.each(Object.entries(COMMANDS))('pombal %s', (name, { args }) => {
  test('explains itself, and does nothing', async () => {
    for (const help of ['--help', '-h']) {
      const { code, output } = await run(name, help)
      expect(output).toContain(`usage: pombal ${name}`)
      expect(code).toBe(0)
    }
    expect(readdirSync(dataDir)).toEqual([])
  })

  test.skipIf(args !== undefined)('refuses arguments, and does nothing', async () => {
    const refused = await run(name, '--no-such-option')
    expect(refused).toMatchObject({ code: 2, output: expect.stringContaining(`pombal ${name} takes no arguments`) })
    expect(readdirSync(dataDir)).toEqual([])
  })
})

test.each([
  ['backup', '--folder'],
  ['restore', '--force'],
  ['export-session', 'inst_1', '--folder'],
])('pombal %s does not treat an option as a path', async (...args) => {
  const refused = await run(...args)
  expect(refused).toMatchObject({ code: 1, output: expect.stringContaining(`usage: pombal ${args[0]}`) })
  expect(readdirSync(dataDir)).toEqual([])
})

test('a command runs from a folder whose name has characters with a meaning in URLs', () => {
  const root = join(import.meta.dirname, '../../..')
  const copy = join(dataDir, '50%25 #1')
  for (const name of ['bin', 'package.json']) cpSync(join(root, name), join(copy, name), { recursive: true })
  symlinkSync(join(root, 'dist'), join(copy, 'dist'))
  const output = execFileSync(process.execPath, [join(copy, 'bin/pombal.js'), 'listen', '--help'], { encoding: 'utf8' })
  expect(output).toContain('usage: pombal listen')
})

describe('pombal demo', () => {
  /** Settings of a production service, which cannot be reached. */
  const PRODUCTION = {
    DATABASE_URL: 'postgres://127.0.0.1:1/production',
    MASTER_KEY: 'not a key',
    ADMIN_KEY_FILE: '/nowhere',
    MEDIA_URL: 's3://production?endpoint=http://127.0.0.1:1',
    PUBLIC_URL: 'https://pombal.example',
    METRICS_PORT: '1',
    OIDC_ISSUER: 'https://127.0.0.1:1',
    WEBHOOK_TIMEOUT_MS: 'none',
  }

  test('uses no setting of the environment, such as a production database', async () => {
    const { code, output } = await runCommand(['demo'], { ...PRODUCTION, TMPDIR: dataDir })
    expect(output).toContain('in order and signed')
    expect(code).toBe(0)
    expect(readdirSync(dataDir)).toEqual([])
  })

  test('reports a service that is killed while it starts', async () => {
    const killService = "process.argv.includes('demo') || process.kill(process.pid, 'SIGKILL')"
    const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(killService)}`
    const { code, output } = await runCommand(['demo'], { NODE_OPTIONS, TMPDIR: dataDir })
    expect(output).toContain('FAILED: The service ended (SIGKILL).')
    expect(code).toBe(1)
    expect(readdirSync(dataDir)).toEqual([])
  })

  test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('stops its service and erases its folder on %s', async signal => {
    const child = spawn(process.execPath, [PROGRAM, 'demo'], {
      env: { PATH: process.env['PATH'], TMPDIR: dataDir },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    killOnExit(child)
    let output = ''
    child.stdout.setEncoding('utf8').on('data', text => {
      output += text
    })
    const ended = new Promise<number | null>(resolve => child.once('exit', resolve))
    const findUrl = () => /Pombal listens on (\S+)/.exec(output)?.[1]
    const url = await until('the service to listen', findUrl, START_WITHIN_MS)
    child.kill(signal)
    expect(await ended).toBe(1)
    expect(output).toContain(`Ended by ${signal}`)
    expect(readdirSync(dataDir)).toEqual([])
    await expect(fetch(url)).rejects.toThrow()
  })
})
