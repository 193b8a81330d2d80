import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')
/** npm writes this file when it installs packages. */
const PACKAGES = join(ROOT, 'node_modules/.package-lock.json')

/** Identifies the installed program by the sizes and times of its files. It changes when an update is installed. */
export function identifyProgram(): string {
  const sources = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' }).toSorted()
  return [PACKAGES, ...sources.map(name => join(ROOT, 'src', name))].map(identify).join()
}

function identify(file: string): string {
  const stats = statSync(file, { throwIfNoEntry: false })
  return stats?.isDirectory() ? '' : `${file} ${stats?.size} ${stats?.mtimeMs}`
}
