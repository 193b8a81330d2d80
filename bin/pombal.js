#!/usr/bin/env node
// Plain JavaScript that old versions of Node can parse: they start the right version, or print a clear message.
import { spawn } from 'node:child_process'
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { createRequire } from 'node:module'
import net from 'node:net'
import os from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { COMMANDS, USAGE, usageOf } from './commands.js'

const BIN = dirname(fileURLToPath(import.meta.url))
// By default V8's young generation grows to 128 MB and keeps unused buffers alive outside the heap until then, and glibc
// keeps freed memory separately for each thread. Together they add 130 MB to a busy node. Consolidating glibc's "fast bins"
// for each large allocation takes a tenth of the main thread's time. These options take effect only when a process starts,
// so it is replaced by a new one with the same ID, pipes and options.
const YOUNG_GENERATION = '--max-semi-space-size'
// Node starts four threads that help V8 collect garbage, on any machine. On two cores they would keep the service's own
// threads from running for tens of milliseconds every few seconds. With this option, they leave one core free if there
// are several.
const HELPERS = '--v8-pool-size'
const MAX_HELPERS = 4
// Node tries the addresses of a name one after the other, and gives up each but the last after 250 ms. That is too short for a
// long path or a lost packet, which is sent again after 1 s. RFC 8305 (section 8) recommends at most 2 s. With it, five addresses
// have their turn within the 10 s of a webhook attempt.
const ADDRESS_TURN = '--network-family-autoselection-attempt-timeout'
const ADDRESS_TURN_MS = 2_000
// Lets the program collect the buffers that files have passed through (`src/media/used-buffers.ts`).
const COLLECTOR = '--expose-gc'

/** @returns the command, or undefined if the process has printed what was asked for and must end */
function readCommand() {
  const [name = 'serve', ...more] = process.argv.slice(2)
  if (Object.hasOwn(COMMANDS, name)) {
    const { args, hasOwnHelp } = COMMANDS[name]
    // Before anything else: a request for help must never run the command.
    if (!hasOwnHelp && more.some(isHelp)) {
      console.log(usageOf(name))
      return undefined
    }
    if (args !== undefined || more.length === 0) return name
    return refuse(`pombal ${name} takes no arguments. Its settings are read from the environment.\n\n${usageOf(name)}`)
  }
  if (name === '--version' || name === '-v') {
    console.log(JSON.parse(readFileSync(join(BIN, '../package.json'), 'utf8')).version)
    return undefined
  }
  if (!isHelp(name) && name !== 'help') return refuse(`There is no command ${name}.\n\n${USAGE}`)
  console.log(USAGE)
  return undefined
}

function isHelp(word) {
  return word === '--help' || word === '-h'
}

function refuse(reason) {
  console.error(reason)
  process.exitCode = 2
  return undefined
}

/** Node 24 that npm has installed with this package; null if there is none, or if it is the one that runs. */
function findNode() {
  try {
    const folder = dirname(createRequire(import.meta.url).resolve('node/package.json'))
    const file = join(folder, 'bin', process.platform === 'win32' ? 'node.exe' : 'node')
    return existsSync(file) && realpathSync(file) !== realpathSync(process.execPath) ? file : null
  } catch {
    return null
  }
}

/** Runs this program again: in the same process where Node and the platform allow it, else in a child. */
function runAgain(node, options, env) {
  const args = [...options, ...process.execArgv, ...process.argv.slice(1)]
  if (process.execve !== undefined && process.platform !== 'win32') process.execve(node, [node, ...args], env)
  const child = spawn(node, args, { stdio: 'inherit', env })
  // A terminal sends Ctrl-C to the child, too. A second signal would cut its stop short.
  const signals = process.stdin.isTTY ? ['SIGTERM', 'SIGHUP'] : ['SIGTERM', 'SIGHUP', 'SIGINT']
  process.on('SIGINT', () => undefined)
  for (const signal of signals) process.on(signal, () => child.kill(signal))
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code ?? 1)
    process.removeAllListeners(signal)
    process.kill(process.pid, signal)
  })
}

/** Whether the operator has set this option of Node. */
function isGiven(option) {
  return [...process.execArgv, process.env.NODE_OPTIONS ?? ''].some(text => text.includes(option))
}

function countHelpers() {
  // Node 18.13 and older lack `availableParallelism`.
  const cores = os.availableParallelism?.() ?? os.cpus().length
  return Math.min(MAX_HELPERS, Math.max(1, cores - 1))
}

async function run(command) {
  const [major, minor] = process.versions.node.split('.').map(Number)
  const isRight = major === 24 && minor >= 12
  const node = isRight ? process.execPath : findNode()
  if (node === null) {
    console.error(
      `Pombal needs Node 24.12 or a later 24; this is ${process.versions.node}, and npm has not installed the right one beside ` +
        'Pombal (its package "node" has an install script, which npm must be allowed to run). Install Node 24, or run ' +
        '"npm rebuild node" in the folder where Pombal is installed.',
    )
    process.exitCode = 1
    return
  }
  const { isServer } = COMMANDS[command]
  const limits = isServer && !isGiven(YOUNG_GENERATION) && !process.connected && process.platform !== 'win32'
  const memory = { MALLOC_ARENA_MAX: '2', GLIBC_TUNABLES: 'glibc.malloc.mxfast=0' }
  const options = [`${YOUNG_GENERATION}=8`, COLLECTOR, ...(isGiven(HELPERS) ? [] : [`${HELPERS}=${countHelpers()}`])]
  if (limits) return runAgain(node, options, { ...memory, ...process.env })
  if (!isRight) return runAgain(node, [], process.env)

  // DNS look-ups block libuv's threads, and libuv runs them on at most half of the threads. With the default of four threads, two
  // hanging look-ups would stop all others. See the limits in `src/outbound/resolver.ts`. An idle thread takes 10 KB.
  process.env.UV_THREADPOOL_SIZE ??= '128'
  // Only for this thread: `WhatsappThreads` passes it on.
  if (!isGiven(ADDRESS_TURN)) net.setDefaultAutoSelectFamilyAttemptTimeout(ADDRESS_TURN_MS)
  // Caches compiled code, which makes a start a third faster. Without a writable folder, every start compiles again.
  // Threads use it only if the variable is set. (Imported dynamically because Node 20 does not have this export.)
  const { enableCompileCache } = await import('node:module')
  process.env.NODE_COMPILE_CACHE ??= join(BIN, '../node_modules/.cache/pombal')
  enableCompileCache(process.env.NODE_COMPILE_CACHE)
  const { COMPILED, isCompiled } = await import('./compiled.js')
  // Commands read their arguments from the third on, as a program of their own would.
  if (process.argv[2] === command) process.argv.splice(2, 1)
  const program = isCompiled() ? join(COMPILED, `${command}.js`) : join(BIN, '..', COMMANDS[command].source)
  await import(pathToFileURL(program).href)
}

const command = readCommand()
if (command !== undefined) await run(command)
