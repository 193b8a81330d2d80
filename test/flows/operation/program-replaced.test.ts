import { appendFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { LONG_TEST_WITHIN_MS } from '../../deadlines.ts'
import { Service } from '../../service.ts'
import { until } from '../../until.ts'

const ROOT = join(import.meta.dirname, '../../..')
const COPIED = ['bin', 'src', 'package.json']
const LINKED = ['node_modules', 'panel/dist']
const PRELOAD = `--import=${join(import.meta.dirname, '../../crashes/thread-fault.ts')}`

function copyProgram(folder: string): string {
  for (const name of COPIED) cpSync(join(ROOT, name), join(folder, name), { recursive: true })
  for (const name of LINKED.filter(name => existsSync(join(ROOT, name)))) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    symlinkSync(join(ROOT, name), join(folder, name))
  }
  return join(folder, 'bin/pombal.js')
}

test(
  'no thread loads an update that was installed while the service was running; a restart does',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'pombal-replaced-'))
    const fault = join(folder, 'fault')
    const service = new Service({
      program: copyProgram(folder),
      env: { THREAD_FAULT: fault, WHATSAPP_THREADS: '1' },
      nodeOptions: [PRELOAD],
    })
    try {
      await service.start()
      const { id, token } = await service.admin.createConnected()
      const instance = service.instance(id, token)
      appendFileSync(join(folder, 'src/whatsapp/threads/thread.ts'), '// An update.\n')
      writeFileSync(fault, 'error')
      const replaced = () => service.logLines.filter(({ msg }) => msg === 'whatsapp.program_replaced')
      await until('the refusal', () => replaced().length > 0)
      const [line] = replaced()
      expect(line).toMatchObject({ level: 60, action: expect.stringContaining('Restart') })
      const { id: message } = await instance.send('5511987654321', 'accepted meanwhile')

      await service.restart()
      await until('the text to be read', async () => (await instance.message(message)).status === 'read')
      expect(replaced()).toHaveLength(1)
    } finally {
      await service.dispose()
      rmSync(folder, { recursive: true })
    }
  },
  LONG_TEST_WITHIN_MS,
)
