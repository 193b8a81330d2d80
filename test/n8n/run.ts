import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

/**
 * `npm run test:n8n`: installs the library of n8n, checks the package with n8n's own rules, compiles it, and runs its tests. With
 * `--real`, it also runs the nodes inside n8n itself.
 */

const ROOT = join(import.meta.dirname, '../..')
const PACKAGE = join(ROOT, 'integrations/n8n-nodes-pombal')

function run(folder: string, command: string, ...options: string[]): void {
  const { status } = spawnSync(command, options, { cwd: folder, stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
}

run(PACKAGE, 'npm', 'ci', '--ignore-scripts', '--no-audit', '--no-fund')
run(PACKAGE, 'npm', 'run', 'lint')
run(PACKAGE, 'npm', 'run', 'build')
run(ROOT, 'npx', 'vitest', 'run', 'test/n8n')
if (process.argv.includes('--real')) run(ROOT, process.execPath, 'test/n8n/real.ts')
