import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { Service } from '../../service.ts'
import { linkedSession, sessionFiles, writeFiles } from '../../sessions/linked-session.ts'
import { runCommand } from '../../sessions/run-command.ts'

const OWNER = 12_345
const folder = mkdtempSync(join(tmpdir(), 'pombal-root-'))
afterAll(() => rmSync(folder, { recursive: true }))

test.skipIf(process.getuid?.() !== 0)(
  'what root creates in the data folder belongs to the owner of the folder',
  async () => {
    const dataDir = join(folder, 'data')
    const service = await new Service({ dataDir }).start()
    await service.kill('SIGTERM')
    rmSync(join(dataDir, 'pombal.lock'))
    execFileSync('chown', ['-R', `${OWNER}:${OWNER}`, dataDir])
    const backups = join(folder, 'backups')
    const run = async (...args: string[]) => {
      const { code, output } = await runCommand(args, { DATA_DIR: dataDir })
      expect(code, output).toBe(0)
      const all = readdirSync(dataDir, { recursive: true, encoding: 'utf8' })
      const ofRoot = all.filter(name => statSync(join(dataDir, name)).uid !== OWNER)
      expect(ofRoot, args.join(' ')).toEqual([])
      expect(statSync(backups).uid, 'a folder elsewhere').toBe(0)
    }
    await run('backup', backups)
    await run('restore', join(backups, readdirSync(backups)[0]!))
    await run('backup', join(dataDir, 'backups', 'daily'))
    const session = join(folder, 'session')
    writeFiles(session, sessionFiles(linkedSession()))
    await run('import-sessions', '--stopped', session)
    await run('rotate-keys')
    await run('vacuum')
  },
)
