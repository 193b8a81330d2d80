import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { BadSettings } from './config.ts'
import { openKeys } from './keys.ts'

let dataDir: string
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'pombal-keys-'))
})
afterEach(() => rmSync(dataDir, { recursive: true, force: true }))

const open = () => openKeys({ dataDir, databaseUrl: null, adminKey: null, masterKey: null })

describe('keys', () => {
  test('the first start makes both, for the owner’s eyes alone, and every later start finds them', () => {
    const first = open()
    expect(first.masterKey).toHaveLength(32)
    expect(first.adminKey.length).toBeGreaterThanOrEqual(32)
    for (const file of ['admin.key', 'master.key']) expect(statSync(join(dataDir, file)).mode & 0o777).toBe(0o600)
    expect(open()).toEqual(first)
    expect(first.adminKeyPlace).toBe(join(dataDir, 'admin.key'))
  })

  test('what starts that were killed left of a key is erased, and nothing else', () => {
    const draft = join(dataDir, 'admin.key.4711')
    for (const file of [draft, join(dataDir, 'master.key.12'), join(dataDir, 'admin.key.old')]) writeFileSync(file, 'x')
    const first = open()
    expect(readdirSync(dataDir).sort()).toEqual(['admin.key', 'admin.key.old', 'master.key'])
    writeFileSync(draft, 'of a start that was slower')
    expect(open()).toEqual(first)
    expect(readdirSync(dataDir)).not.toContain('admin.key.4711')
  })

  test('keys from the settings win, and nothing is written', () => {
    const masterKey = Buffer.alloc(32, 7)
    const keys = openKeys({ dataDir: join(dataDir, 'new'), databaseUrl: null, adminKey: 'a'.repeat(40), masterKey })
    expect(keys).toMatchObject({ adminKey: 'a'.repeat(40), masterKey })
    expect(() => readFileSync(join(dataDir, 'new', 'master.key'))).toThrow()
  })

  test('a master key that went missing beside the data is said, not replaced', () => {
    writeFileSync(join(dataDir, 'pombal.db'), '')
    expect(open).toThrow(BadSettings)
    expect(() => readFileSync(join(dataDir, 'master.key'))).toThrow()
  })

  test('a damaged master key is said', () => {
    writeFileSync(join(dataDir, 'master.key'), 'not a key')
    expect(open).toThrow(BadSettings)
  })
})
