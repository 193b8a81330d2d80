import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** `src`, or the folder of the compiled program. Both are in the root. */
const PROGRAM = import.meta.dirname
const ROOT = join(PROGRAM, '..')
/** npm writes this file when it installs packages. */
const PACKAGES = join(ROOT, 'node_modules/.package-lock.json')

/** Identifies the installed program by the sizes and times of its files. It changes when an update is installed. */
export function identifyProgram(): string {
  const sources = readdirSync(PROGRAM, { recursive: true, encoding: 'utf8' }).toSorted()
  return [PACKAGES, ...sources.map(name => join(PROGRAM, name))].map(identify).join()
}

/** The version in package.json. */
export function readVersion(): string {
  return JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).version
}

function identify(file: string): string {
  const stats = statSync(file, { throwIfNoEntry: false })
  return stats?.isDirectory() ? '' : `${file} ${stats?.size} ${stats?.mtimeMs}`
}
