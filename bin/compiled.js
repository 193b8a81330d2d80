import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')
/** npm writes the last file when it installs packages. */
const SOURCES = ['bin', 'src', 'simulator/src', 'scripts/build-program.js', 'node_modules/.package-lock.json']

/** The folder of the compiled program. */
export const COMPILED = join(ROOT, 'dist')
/** Written last: the state of the sources from which the program was compiled. */
export const STATE_FILE = 'sources.txt'

/** Identifies the present sources by the names, sizes and times of their files. */
export function stateOfSources() {
  return SOURCES.flatMap(filesIn)
    .map(file => {
      const { size, mtimeMs } = statSync(join(ROOT, file))
      return `${file} ${size} ${mtimeMs}\n`
    })
    .join('')
}

/** False if a source was changed since the program was compiled. A package has no sources, so nothing can differ. */
export function isCompiled() {
  const stateFile = join(COMPILED, STATE_FILE)
  if (!existsSync(stateFile)) return false
  return !existsSync(join(ROOT, 'src')) || readFileSync(stateFile, 'utf8') === stateOfSources()
}

function filesIn(path) {
  const stats = statSync(join(ROOT, path), { throwIfNoEntry: false })
  if (stats === undefined) return []
  if (!stats.isDirectory()) return [path]
  return readdirSync(join(ROOT, path))
    .sort()
    .filter(name => !name.endsWith('.test.ts'))
    .flatMap(name => filesIn(`${path}/${name}`))
}
