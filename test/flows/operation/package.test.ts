import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { COMMANDS } from '../../../bin/commands.js'
import { LONG_TEST_WITHIN_MS } from '../../deadlines.ts'

/** What a stranger does: `npm pack`, `npm install` of the file in an empty folder, `npx pombal`. On Node 20 and on Node 24. */

const ROOT = join(import.meta.dirname, '../../..')
/** npm's packages of Node alone, one for each system. They have no install scripts. */
const NODE_20 = `node-${process.platform}-${process.arch}@20.20.2`
/** The registry cannot be asked, so nothing can be said about the package. */
const UNREACHABLE = /\b(ENOTFOUND|ECONNREFUSED|ECONNRESET|ETIMEDOUT|EAI_AGAIN|ENETUNREACH|EHOSTUNREACH|E403|E5\d\d)\b/
const INSTALL = ['install', '--prefer-offline', '--no-audit', '--no-fund', '--no-save', '--loglevel=error']

const NPX = ['--no-install', 'pombal']

const folder = mkdtempSync(join(tmpdir(), 'pombal-package-'))
const project = join(folder, 'project')
const installed = join(project, 'node_modules/pombal')
let node20 = ''
let unreachable: string | null = null

afterAll(() => rmSync(folder, { recursive: true }))

/** `npm test` passes the settings of this project on to its children. A stranger's folder has none. */
function environment(nodeFolder?: string): NodeJS.ProcessEnv {
  const env = Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) =>
        !/^(npm_(package|lifecycle)_|npm_config_(strict_|local_|global_)?(allow|prefix)|NODE_(?!EXTRA_CA_CERTS)|VITEST)/.test(
          name,
        ),
    ),
  )
  return { ...env, PATH: [nodeFolder, env['PATH']].filter(Boolean).join(delimiter) }
}

function run(command: string, args: readonly string[], cwd: string, nodeFolder?: string) {
  return new Promise<{ code: number; output: string }>(resolve => {
    const options = { cwd, env: environment(nodeFolder), maxBuffer: 2 ** 24 }
    execFile(command, args, options, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 1
      resolve({ code, output: stdout + stderr })
    })
  })
}

async function npm(args: readonly string[], cwd: string, nodeFolder?: string): Promise<void> {
  if (unreachable !== null) return
  const { code, output } = await run('npm', args, cwd, nodeFolder)
  if (code !== 0 && UNREACHABLE.test(output)) unreachable = `npm's registry does not answer: ${output.slice(0, 300)}`
  else expect(code, output).toBe(0)
}

function emptyFolder(name: string): string {
  const path = join(folder, name)
  mkdirSync(path)
  writeFileSync(join(path, 'package.json'), '{}')
  return path
}

beforeAll(async () => {
  await npm(['pack', '--ignore-scripts', '--silent', '--pack-destination', folder], ROOT)
  const [file = ''] = readdirSync(folder)
  const tools = emptyFolder('tools')
  await npm([...INSTALL, NODE_20], tools)
  node20 = join(tools, 'node_modules', NODE_20.split('@')[0] ?? '', 'bin')
  await npm([...INSTALL, join(folder, file)], emptyFolder('project'), node20)
}, LONG_TEST_WITHIN_MS)

test.for([
  ['20', () => node20],
  ['24', () => dirname(process.execPath)],
] as const)(
  'in an empty folder with Node %s, the demo of the packed package sends messages until they are read',
  { timeout: LONG_TEST_WITHIN_MS },
  async ([major, nodeFolder], { skip }) => {
    skip(unreachable !== null, unreachable ?? '')
    expect((await run('node', ['--version'], project, nodeFolder())).output).toMatch(new RegExp(`^v${major}\\.`))
    const { code, output } = await run('npx', [...NPX, 'demo'], project, nodeFolder())
    expect(code, output).toBe(0)
    expect(output).toMatch(/message\.read .*✓ signed/)
    expect(output).not.toContain('✗')
  },
)

test('the package has every command, and neither sources nor tests', async ({ skip }) => {
  skip(unreachable !== null, unreachable ?? '')
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const said = await run('npx', [...NPX, '--version'], project, node20)
  expect(said.code).toBe(0)
  expect(said.output.split('\n')).toContain(version)
  for (const name of Object.keys(COMMANDS)) expect(existsSync(join(installed, 'dist', `${name}.js`)), name).toBe(true)
  for (const name of ['LICENSE', 'NOTICE', 'README.md']) expect(existsSync(join(installed, name)), name).toBe(true)
  const files = readdirSync(installed, { recursive: true, encoding: 'utf8' })
  expect(files.filter(name => /^(src|test|simulator|scripts)\b/.test(name))).toEqual([])
})
