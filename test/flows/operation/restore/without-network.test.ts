import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Service } from '../../../service.ts'

const ROOT = join(import.meta.dirname, '../../../..')
const NEW_SHELL = 'sudo unshare --net sh'

/** The commands of docs/backup.md that are typed in the shell without a network. */
function commandsWithoutNetwork(): string {
  const document = readFileSync(join(ROOT, 'docs/backup.md'), 'utf8')
  const block = document.split('```').find(text => text.startsWith(`sh\n${NEW_SHELL}`))
  if (block === undefined) throw new Error(`docs/backup.md has no commands that begin with ${NEW_SHELL}.`)
  return block.split('\n').slice(2).join('\n')
}

function canLeaveTheNetwork(): boolean {
  return spawnSync('unshare', ['--net', 'ip', 'link', 'set', 'lo', 'up']).status === 0
}

test('the commands of docs/backup.md start a service that reaches nothing but its own machine', async context => {
  if (!canLeaveTheNetwork()) return context.skip('Needs the right to create a network namespace, and the command ip.')
  const folder = mkdtempSync(join(tmpdir(), 'pombal-restored-'))
  const service = new Service({ dataDir: folder })
  onTestFinished(async () => {
    await service.dispose()
    rmSync(folder, { recursive: true, force: true })
  })
  await service.start()
  await service.kill('SIGTERM')
  const commands = commandsWithoutNetwork()
  expect(commands).toContain('DATA_DIR=/srv/restored ')
  const typed = `${commands.replace('/srv/restored', folder)}\necho\nip -brief address\nkill %1`
  const said = execFileSync('unshare', ['--net', 'bash', '-e', '-c', typed], { cwd: ROOT, encoding: 'utf8' })
  expect(said).toContain('{"status":"ready"}')
  expect(said.match(/^\S+ +(UNKNOWN|UP|DOWN) .*$/gm)).toEqual([expect.stringMatching(/^lo .*127\.0\.0\.1/)])
})
