/**
 * `npm run test:oldest-postgres [-- PART_OF_A_PATH …]`: runs the tests of the store's guarantees and some flows on the first release of the oldest
 * PostgreSQL that Pombal supports, which it installs from npm into a temporary folder.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { OLDEST_VERSION } from '../../src/store/engine/postgres/unusable.ts'
import { OTHER_POSTGRES, POSTGRES_PACKAGE } from './postgres.ts'

/** The npm release that contains PostgreSQL 15.0, the same for the package of every platform. */
const RELEASE = '15.0.0-beta.6'
const TESTS = [
  'test/contract',
  'test/flows/end-to-end',
  'test/flows/operation/start-up-postgres',
  'test/flows/webhooks/delivery',
]

function run(program: string, args: readonly string[], folder: string, env: NodeJS.ProcessEnv = {}): number {
  const { status } = spawnSync(program, args, { cwd: folder, stdio: 'inherit', env: { ...process.env, ...env } })
  return status ?? 1
}

function runTests(folder: string): number {
  writeFileSync(
    join(folder, 'package.json'),
    JSON.stringify({ private: true, allowScripts: { [POSTGRES_PACKAGE]: true } }),
  )
  const installed = run('npm', ['install', '--no-audit', '--no-fund', `${POSTGRES_PACKAGE}@${RELEASE}`], folder)
  if (installed !== 0) return installed
  const other = join(folder, 'node_modules', POSTGRES_PACKAGE)
  const { version } = JSON.parse(readFileSync(join(other, 'package.json'), 'utf8')) as { version: string }
  if (!version.startsWith(`${OLDEST_VERSION}.`))
    throw new Error(`${version} is not the oldest version, ${OLDEST_VERSION}.`)
  console.log(`PostgreSQL ${version}`)
  const parts = process.argv.slice(2)
  const tests = ['run', ...(parts.length > 0 ? parts : TESTS)]
  return run('npx', ['vitest', ...tests], join(import.meta.dirname, '../..'), { [OTHER_POSTGRES]: other })
}

const folder = mkdtempSync(join(tmpdir(), 'pombal-oldest-postgres-'))
try {
  process.exitCode = runTests(folder)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
