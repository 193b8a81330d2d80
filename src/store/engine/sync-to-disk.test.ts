import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { openKeys } from '../../keys.ts'
import { FolderStorage } from '../../media/storage/folder.ts'

const refuse = vi.hoisted(() => () => {
  throw Object.assign(new Error('EPERM: operation not permitted, fsync'), { code: 'EPERM' })
})

/** As on Windows: what is open for reading cannot be synced. */
vi.mock('node:fs', async importOriginal => {
  const original = await importOriginal<typeof import('node:fs')>()
  const readOnly = new Set<number>()
  const openSync = (path: string, flags: string, mode?: number) => {
    const descriptor = original.openSync(path, flags, mode)
    if (flags === 'r') readOnly.add(descriptor)
    else readOnly.delete(descriptor)
    return descriptor
  }
  const fsyncSync = (descriptor: number) => (readOnly.has(descriptor) ? refuse() : original.fsyncSync(descriptor))
  return { ...original, openSync, fsyncSync }
})
vi.mock('node:fs/promises', async importOriginal => {
  const original = await importOriginal<typeof import('node:fs/promises')>()
  const open = async (path: string, flags: string, mode?: number) => {
    const handle = await original.open(path, flags, mode)
    if (flags === 'r') handle.sync = async () => refuse()
    return handle
  }
  return { ...original, open }
})

test('on Windows, which cannot sync folders, keys are created and files are stored and removed', async () => {
  const { platform } = process
  Object.defineProperty(process, 'platform', { value: 'win32' })
  const dataDir = mkdtempSync(join(tmpdir(), 'pombal-windows-'))
  onTestFinished(() => {
    Object.defineProperty(process, 'platform', { value: platform })
    rmSync(dataDir, { recursive: true })
  })
  expect(openKeys({ dataDir, databaseUrl: null, adminKey: null, masterKey: null }).masterKey).toHaveLength(32)
  const storage = new FolderStorage(join(dataDir, 'media'))
  await storage.write(
    'inst_1/file_1',
    (async function* () {
      yield Buffer.from('content')
    })(),
  )
  expect(await storage.read('inst_1/file_1', { from: 0, to: 6 })).not.toBeNull()
  await storage.remove('inst_1/file_1')
  expect(await storage.read('inst_1/file_1', { from: 0, to: 6 })).toBeNull()
})
