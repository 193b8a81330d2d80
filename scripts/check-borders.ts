import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { findViolations } from './borders/find-violations.ts'
import { MODULES } from './borders/modules.ts'

/** Checks that each module imports only what `borders/modules.ts` allows: `npm run check:borders`. Tests may import anything. */

const CHECKED = ['bin/**/*.js', 'src/**/*.ts', 'simulator/src/**/*.ts', 'panel/src/**/*.{ts,tsx}']

const root = process.argv[2] ?? join(import.meta.dirname, '..')
const paths = globSync(CHECKED, { cwd: root }).filter(path => !path.includes('.test.'))
if (paths.length === 0) throw new Error(`There are no files to check in ${root}.`)
const sources = paths.map(path => ({ path, text: readFileSync(join(root, path), 'utf8') }))
const violations = findViolations(MODULES, sources)
for (const violation of violations) console.error(violation)
if (violations.length > 0) {
  console.error(
    `${violations.length} imports are not allowed. scripts/borders/modules.ts lists what each module may import.`,
  )
  process.exitCode = 1
} else console.log(`Checked the imports of ${sources.length} files.`)
