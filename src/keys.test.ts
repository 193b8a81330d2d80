import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { BadSettings } from './config.ts'
import { openKeys } from './keys.ts'

const other = vi.hoisted(() => ({ start: null as (() => void) | null }))
const fileSystem = vi.hoisted(() => ({ keepsModes: true, linkFails: null as string | null }))

/** Runs `other.start` after a draft was opened and before it is written. File systems such as exFAT keep no modes or links. */
vi.mock('node:fs', async importOriginal => {
  const original = await importOriginal<typeof import('node:fs')>()
  const writeSync = (descriptor: number, text: string) => {
    const { start } = other
    other.start = null
    start?.()
    return original.writeSync(descriptor, text)
  }
  const fstatSync = (descriptor: number) => {
    const found = original.fstatSync(descriptor)
    if (!fileSystem.keepsModes) found.mode |= 0o777
    return found
  }
  const linkSync = (from: string, to: string) => {
    const code = fileSystem.linkFails
    if (code !== null) throw Object.assign(new Error(`${code}: link`), { code, syscall: 'link' })
    original.linkSync(from, to)
  }
  return { ...original, writeSync, fstatSync, linkSync }
})

let dataDir: string
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'pombal-keys-'))
})
afterEach(() => rmSync(dataDir, { recursive: true, force: true }))

const open = () => openKeys({ dataDir, databaseUrl: null, adminKey: null, masterKey: null })

describe('keys', () => {
  test('are created by the first start, readable by their owner only, and reused by later starts', () => {
    const first = open()
    expect(first.masterKey).toHaveLength(32)
    expect(first.adminKey.length).toBeGreaterThanOrEqual(32)
    for (const file of ['admin.key', 'master.key']) expect(statSync(join(dataDir, file)).mode & 0o777).toBe(0o600)
    expect(open()).toEqual(first)
  })

  test('leave no drafts of killed starts, and other files are kept', () => {
    const draft = join(dataDir, 'admin.key.4711')
    for (const file of [draft, join(dataDir, 'master.key.12'), join(dataDir, 'admin.key.old')]) writeFileSync(file, 'x')
    const first = open()
    expect(readdirSync(dataDir).sort()).toEqual(['admin.key', 'admin.key.old', 'master.key'])
    writeFileSync(draft, 'of a start that was slower')
    expect(open()).toEqual(first)
    expect(readdirSync(dataDir)).not.toContain('admin.key.4711')
  })

  test('are the same in two containers that start at the same moment on one volume, with the same process id', () => {
    const containers: ReturnType<typeof open>[] = []
    other.start = () => containers.push(open())
    containers.push(open())
    expect(containers).toHaveLength(2)
    expect(containers[0]).toEqual(containers[1])
    expect(readdirSync(dataDir).sort()).toEqual(['admin.key', 'master.key'])
  })

  test.each([
    { change: { keepsModes: false }, complaint: 'keeps no permissions' },
    { change: { linkFails: 'EPERM' }, complaint: 'keeps no links' },
    { change: { linkFails: 'ENOTSUP' }, complaint: 'keeps no links' },
  ])('are not created where the file system $complaint; the error names what helps', ({ change, complaint }) => {
    Object.assign(fileSystem, change)
    onTestFinished(() => void Object.assign(fileSystem, { keepsModes: true, linkFails: null }))
    expect(open).toThrow(new RegExp(`${complaint}.*Set DATA_DIR .*, or set ADMIN_KEY and MASTER_KEY`))
    expect(readdirSync(dataDir)).toEqual([])
  })

  test('from the settings take precedence, and nothing is written', () => {
    const masterKey = Buffer.alloc(32, 7)
    const keys = openKeys({ dataDir: join(dataDir, 'new'), databaseUrl: null, adminKey: 'a'.repeat(40), masterKey })
    expect(keys).toMatchObject({ adminKey: 'a'.repeat(40), masterKey })
    expect(() => readFileSync(join(dataDir, 'new', 'master.key'))).toThrow()
  })

  test('are not replaced if the master key is missing while there is data: the start is refused', () => {
    writeFileSync(join(dataDir, 'pombal.db'), '')
    expect(open).toThrow(BadSettings)
    expect(() => readFileSync(join(dataDir, 'master.key'))).toThrow()
  })

  test.each(['restored', 'former'])(
    'are not created beside pombal.db.%s: the restore that was not finished needs the key of the backup',
    name => {
      writeFileSync(join(dataDir, `pombal.db.${name}`), '')
      expect(open).toThrow('A restore was not finished: run "pombal restore" again.')
      expect(readdirSync(dataDir)).not.toContain('master.key')
    },
  )

  const good = { 'admin.key': 'a'.repeat(43), 'master.key': Buffer.alloc(32, 7).toString('base64') }

  test.each([
    ['master.key', 'not a key', 'restore it from your copy'],
    ['master.key', '', 'restore it from your copy'],
    ['master.key', Buffer.alloc(31).toString('base64'), 'restore it from your copy'],
    ['master.key', Buffer.alloc(31).toString('hex'), 'restore it from your copy'],
    ['admin.key', 'abc', 'delete it, and the next start creates a new key'],
    ['admin.key', '', 'delete it, and the next start creates a new key'],
    ['admin.key', 'a'.repeat(31), 'delete it, and the next start creates a new key'],
    ['admin.key', 'a'.repeat(1_025), 'delete it, and the next start creates a new key'],
    ['admin.key', `${'a'.repeat(40)} ${'b'.repeat(40)}`, 'delete it, and the next start creates a new key'],
    ['admin.key', `${'a'.repeat(40)}é`, 'delete it, and the next start creates a new key'],
  ])('in a %s with the content "%s" are refused with the remedy, and the file is unchanged', (name, text, remedy) => {
    writeFileSync(join(dataDir, name), `${text}\n`, { mode: 0o600 })
    expect(open).toThrow(BadSettings)
    expect(open).toThrow(`${join(dataDir, name)} does not contain`)
    expect(open).toThrow(remedy)
    expect(readFileSync(join(dataDir, name), 'utf8')).toBe(`${text}\n`)
  })

  test.each(['admin.key', 'master.key'] as const)('in a %s that other users may read or change are refused', name => {
    const file = join(dataDir, name)
    writeFileSync(file, `${good[name]}\n`, { mode: 0o600 })
    for (const mode of [0o644, 0o640, 0o604, 0o620, 0o666, 0o601]) {
      chmodSync(file, mode)
      expect(open).toThrow(`${file} is accessible to other users (mode 0${mode.toString(8)}): run "chmod 600 ${file}"`)
    }
    for (const mode of [0o600, 0o400, 0o700]) {
      chmodSync(file, mode)
      expect(open().adminKey.length).toBeGreaterThan(31)
    }
  })

  test('from the settings are used without reading the files', () => {
    for (const name of ['admin.key', 'master.key']) writeFileSync(join(dataDir, name), 'abc', { mode: 0o644 })
    const masterKey = Buffer.alloc(32, 7)
    expect(openKeys({ dataDir, databaseUrl: null, adminKey: 'a'.repeat(40), masterKey })).toMatchObject({ masterKey })
  })
})
