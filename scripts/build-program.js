// Compiles the service, its threads and its commands into `dist`, each with the packages that it imports. Node does not run
// TypeScript in an installed package, and the compiled program starts in half the time.
// Plain JavaScript, because `npm ci --omit=dev` runs it too: without the build tools, and possibly on an older Node.
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { COMMANDS } from '../bin/commands.js'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
/**
 * Packages that stay outside. The service recognises the errors and the console output of Baileys and libsignal by their
 * files, and libsignal's licence would cover a program that contains it. The others have files beside their code, or are
 * optional packages of packages, which are not installed.
 */
const EXTERNAL = [
  ...['baileys', 'libsignal', 'better-sqlite3', '@scalar/fastify-api-reference'],
  ...['pg-native', 'sharp', 'jimp', 'link-preview-js', 'audio-decode'],
]
const IS_EXTERNAL = new RegExp(`^(?:node:|(?:${EXTERNAL.join('|')})(?:/|$))`)
/** How the code names the file of a thread. */
const THREAD_FILE = /new URL\('(\.[^']+\.ts)', import\.meta\.url\)/g

/** The name of a thread's file in the folder of the compiled program, which has no subfolders. */
function compiledName(file) {
  return `${relative(ROOT, file).replace(/\.ts$/, '').replaceAll(/[\\/]/g, '-')}.js`
}

/** Compiles the file of each thread, too, and points to it. */
const threads = {
  name: 'threads',
  transform: {
    filter: { code: /import\.meta\.url/ },
    handler(code, id) {
      const compiled = code.replaceAll(THREAD_FILE, (_, path) => {
        const file = join(dirname(id), path)
        this.emitFile({ type: 'chunk', id: file, fileName: compiledName(file) })
        return `new URL('./${compiledName(file)}', import.meta.url)`
      })
      return compiled === code ? null : { code: compiled }
    },
  },
}

/**
 * The bundler drops the call of a built-in function whose result is unused, even if it is there to throw. Then the compiled
 * program would do something else than the source, which most tests run.
 */
const EMPTIED = /try \{\s*(?:return (?:true|false|null|void 0);\s*)?\} (?:catch|finally)/

function refuseEmptied(chunks) {
  for (const { modules } of chunks) {
    for (const [id, { code }] of Object.entries(modules ?? {})) {
      if (!id.includes('node_modules') && EMPTIED.test(code ?? '')) {
        throw new Error(`${relative(ROOT, id)}: the bundler emptied a "try" block. Use the result of the call in it.`)
      }
    }
  }
}

/** The folder of each package whose code is in the program. */
function packagesIn(chunks) {
  const folders = chunks
    .flatMap(({ moduleIds }) => moduleIds ?? [])
    .map(id => /^.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+/.exec(id)?.[0])
  return [...new Set(folders.filter(folder => folder !== undefined))].sort()
}

function licenceOf(folder) {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const files = readdirSync(folder).filter(file => /^(licen[cs]e|copying|notice)/i.test(file))
  const texts = files.map(file => readFileSync(join(folder, file), 'utf8').trim())
  return [`${name} ${version}: ${license}`, ...texts].join('\n\n')
}

async function build() {
  const { build: bundle } = await import('rolldown')
  const { COMPILED, STATE_FILE, stateOfSources } = await import('../bin/compiled.js')
  const state = stateOfSources()
  const draft = mkdtempSync(join(ROOT, '.dist-'))
  try {
    const { output } = await bundle({
      cwd: ROOT,
      input: Object.fromEntries(Object.keys(COMMANDS).map(name => [name, join(ROOT, COMMANDS[name].source)])),
      platform: 'node',
      external: id => IS_EXTERNAL.test(id),
      plugins: [threads],
      output: { dir: draft, format: 'esm', chunkFileNames: '[name]-[hash].js' },
    })
    refuseEmptied(output)
    const licences = packagesIn(output).map(licenceOf)
    writeFileSync(join(draft, 'LICENCES.txt'), licences.join(`\n\n${'-'.repeat(80)}\n\n`))
    writeFileSync(join(draft, STATE_FILE), state)
    chmodSync(draft, 0o755)
    rmSync(COMPILED, { recursive: true, force: true })
    renameSync(draft, COMPILED)
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
}

if (existsSync(join(ROOT, 'node_modules/rolldown'))) await build()
else console.log('Pombal was not compiled because its build tools are not installed. It runs from its source.')
