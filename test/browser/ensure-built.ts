import { execFileSync } from 'node:child_process'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '../..')

/** Builds the panel unless it was built after its last change, so no test uses an outdated one. */
export function ensurePanelBuilt(): void {
  const builtAt = changedAt(join(ROOT, 'panel/dist/index.html'))
  const sources = [
    join(ROOT, 'panel/index.html'),
    join(ROOT, 'panel/vite.config.ts'),
    ...filesIn(join(ROOT, 'panel/src')),
    ...filesIn(join(ROOT, 'panel/guides')),
    ...filesIn(join(ROOT, 'src/domain')),
    ...filesIn(join(ROOT, 'docs')).filter(file => file.endsWith('.md')),
  ]
  if (sources.every(file => changedAt(file) < builtAt)) return
  // The test runner's NODE_ENV would build the pages for development: slower, and with other code.
  const env = { ...process.env, NODE_ENV: 'production' }
  execFileSync(process.execPath, [join(ROOT, 'scripts/build-panel.js')], { stdio: 'inherit', env })
}

function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
}

function changedAt(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0
}
