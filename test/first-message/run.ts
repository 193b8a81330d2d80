/**
 * `npm run test:first-message`: from nothing but Node and npm to `message.read`, once in a clone and once with the packed
 * package, each with Node 20 and with Node 24, and with an empty npm cache. Fails if one takes longer than three minutes.
 * It downloads each package four times. Only committed files are in the clone. `npm run test:image` is the third way.
 */
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'

const ROOT = join(import.meta.dirname, '../..')
const WITHIN_S = 180
/** The npm packages that contain only Node, one for each platform. */
const NODES = ['20.20.2', '24.12.0'].map(version => `node-${process.platform}-${process.arch}@${version}`)
const QUIET = ['--no-audit', '--no-fund', '--loglevel=error']
/** The line that the demo prints for a read receipt with a valid signature. */
const READ = /message\.read .*✓ signed/

const folder = mkdtempSync(join(tmpdir(), 'pombal-first-message-'))

interface Place {
  cwd: string
  /** The folder of the `node` that `PATH` begins with. */
  node?: string
  cache?: string
}

/** Variables that a new user would not have, because `npm run` sets them. Settings of the registry and of certificates stay. */
const NOT_PASSED_ON =
  /^(INIT_CWD$|npm_(package|lifecycle)_|npm_config_(cache|(strict_|local_|global_)?(allow|prefix))|NODE_(?!EXTRA_CA_CERTS))/i

function environment({ node, cache }: Place): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(([name]) => !NOT_PASSED_ON.test(name))
  const path = (process.env['PATH'] ?? '').split(delimiter).filter(part => !part.includes('node_modules'))
  const PATH = [node, ...path].filter(Boolean).join(delimiter)
  return { ...Object.fromEntries(own), PATH, ...(cache !== undefined && { npm_config_cache: cache }) }
}

/** @returns the output. @throws Error unless the command succeeds */
function run(command: string, args: readonly string[], place: Place): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: place.cwd, env: environment(place), stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (part: string) => {
        output += part
      })
    child.once('error', reject)
    child.once('close', code => {
      if (code === 0) resolve(output)
      else reject(new Error(`${command} ${args.join(' ')} ended with ${code}:\n${output}`))
    })
  })
}

function emptyFolder(name: string): string {
  const path = join(folder, name)
  mkdirSync(path)
  return path
}

async function fromClone(place: Place): Promise<string> {
  await run('git', ['clone', '--quiet', `file://${ROOT}`, 'pombal'], place)
  const clone = { ...place, cwd: join(place.cwd, 'pombal') }
  await run('npm', ['ci', ...QUIET], clone)
  return run('npm', ['run', 'demo'], clone)
}

async function fromPackage(place: Place, file: string): Promise<string> {
  writeFileSync(join(place.cwd, 'package.json'), '{}')
  await run('npm', ['install', ...QUIET, file], place)
  return run('npx', ['--no-install', 'pombal', 'demo'], place)
}

async function main(): Promise<void> {
  const tools = emptyFolder('tools')
  writeFileSync(join(tools, 'package.json'), '{}')
  const packed = emptyFolder('packed')
  await run('npm', ['pack', '--silent', '--pack-destination', packed], { cwd: ROOT })
  const file = join(packed, readdirSync(packed)[0] ?? '')
  for (const name of NODES) {
    const alias = name.replace(/^.*@/, 'node-')
    await run('npm', ['install', ...QUIET, `${alias}@npm:${name}`], { cwd: tools })
    const node = join(tools, 'node_modules', alias, 'bin')
    const version = (await run('node', ['--version'], { cwd: tools, node })).trim()
    for (const [way, start] of Object.entries({ clone: fromClone, package: fromPackage })) {
      const cwd = emptyFolder(`${way}-${version}`)
      const startedAt = performance.now()
      const output = await start({ cwd, node, cache: join(cwd, 'cache') }, file)
      const seconds = (performance.now() - startedAt) / 1_000
      if (!READ.test(output) || output.includes('✗')) throw new Error(`No message was read:\n${output}`)
      console.log(`${way}, Node ${version}: the demo ended after ${seconds.toFixed(1)} s`)
      if (seconds > WITHIN_S) throw new Error(`That is longer than ${WITHIN_S} s.`)
      rmSync(cwd, { recursive: true })
    }
  }
}

try {
  await main()
} catch (error) {
  console.error((error as Error).message)
  process.exitCode = 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
