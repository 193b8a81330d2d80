import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '..')

/** One file that breaks a rule, and the sentence that has to name it. */
const VIOLATIONS = [
  ['an import', 'src/domain/x.ts', `import { openStore } from '../store/open-store.ts'\nopenStore`],
  [
    'an import of a type',
    'src/webhooks/x.ts',
    `import type { Phones } from '../sandbox/remote-phones.ts'\nlet x: Phones`,
  ],
  ['a re-export', 'src/api/x.ts', `export { Writer } from '../store/engine/writer.ts'`],
  ['a re-export of everything', 'src/ops/x.ts', `export * from '../whatsapp/connection/connection.ts'`],
  ['a dynamic import', 'src/instances/x.ts', `export const x = () => import('../api/server.ts')`],
  ['a type by import()', 'panel/src/x.ts', `export type X = import('../../src/store/store.ts').Store`],
  ['the file of a worker', 'src/kit/x.ts', `new Worker(new URL('../api/server.ts', import.meta.url))`],
  ['a package of another module', 'src/whatsapp/sending/x.ts', `import { proto } from 'baileys'\nproto`],
  ['a part of such a package', 'src/api/v1/x.ts', `import { Migrator } from 'kysely/migration'\nMigrator`],
  ['a module of Node', 'src/domain/x.ts', `import { readFileSync } from 'node:fs'\nreadFileSync`],
  ['the code that keeps a promise of the store', 'src/api/x.ts', `import '../store/messages/stored-messages.ts'`],
  [
    'the service, by the simulator',
    'simulator/src/x.ts',
    `import { readSettings } from '../../src/config.ts'\nreadSettings`,
  ],
  ['a name that is computed', 'src/ops/x.ts', `export const x = (name: string) => import(name)`],
  ['a file of no module', 'src/elsewhere/x.ts', `export const x = 1`],
] as const

describe('the borders between modules', () => {
  let root: string

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'pombal-borders-'))
    for (const folder of ['bin', 'src', 'simulator/src', 'panel/src']) {
      cpSync(join(ROOT, folder), join(root, folder), { recursive: true })
    }
  })
  afterEach(() => rmSync(root, { recursive: true, force: true }))

  const check = (folder = root) =>
    spawnSync(process.execPath, [join(ROOT, 'scripts/check-borders.ts'), folder], { encoding: 'utf8' })

  test("hold in today's code", () => {
    const { status, stderr } = check()
    expect(stderr).toBe('')
    expect(status).toBe(0)
  })

  test.each(VIOLATIONS)('refuse %s', (_kind, path, text) => {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), `${text}\n`)
    const { status, stderr } = check()
    expect(stderr.split('\n').filter(line => line.startsWith(path))).toHaveLength(1)
    expect(status).toBe(1)
  })

  test('do not pass if no file was checked', () => {
    const { status, stderr } = check(join(root, 'bin/none'))
    expect(stderr).toContain('no files to check')
    expect(status).not.toBe(0)
  })
})
