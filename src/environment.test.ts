import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { problemsOf } from '../test/units/settings-problems.ts'
import { readSettings } from './config.ts'

const folder = mkdtempSync(join(tmpdir(), 'settings-'))
afterAll(() => rmSync(folder, { recursive: true }))

function fileOf(content: string): string {
  const path = join(folder, `${content.length}`)
  writeFileSync(path, content)
  return path
}

describe('a secret', () => {
  const key = 'k'.repeat(40)

  test('is read from the file that its _FILE variable names, without the line break at its end', () => {
    const master = Buffer.alloc(32, 7)
    const settings = readSettings({
      ADMIN_KEY_FILE: fileOf(`${key}\n`),
      MASTER_KEY_FILE: fileOf(master.toString('base64')),
      DATABASE_URL_FILE: fileOf('postgres://localhost/pombal\r\n'),
    })
    expect(settings).toMatchObject({ adminKey: key, masterKey: master, databaseUrl: 'postgres://localhost/pombal' })
  })

  test('is refused if it is given twice, or its file is missing, empty or wrong', () => {
    expect(problemsOf({ ADMIN_KEY: key, ADMIN_KEY_FILE: fileOf(key) })).toEqual([
      'ADMIN_KEY and ADMIN_KEY_FILE are both set: unset one of them.',
    ])
    expect(problemsOf({ ADMIN_KEY_FILE: join(folder, 'none') })).toEqual([
      expect.stringMatching(/^ADMIN_KEY_FILE cannot be read: ENOENT/),
    ])
    expect(problemsOf({ ADMIN_KEY_FILE: fileOf('\n') })).toEqual(['ADMIN_KEY_FILE names an empty file.'])
    expect(problemsOf({ MASTER_KEY_FILE: fileOf('short') })).toEqual([expect.stringMatching(/^MASTER_KEY must be/)])
  })

  test('may be a master key of 64 hex digits', () => {
    const bytes = Buffer.alloc(32, 0xab)
    expect(readSettings({ MASTER_KEY: bytes.toString('hex') }).masterKey).toEqual(bytes)
    expect(readSettings({ MASTER_KEY: bytes.toString('hex').toUpperCase() }).masterKey).toEqual(bytes)
    expect(problemsOf({ MASTER_KEY: bytes.toString('hex').slice(1) })).toHaveLength(1)
  })
})

test.each([
  ['RETENTION_DAY', 'RETENTION_DAYS'],
  ['WEBHOOK_TIMEOUT', 'WEBHOOK_TIMEOUT_MS'],
  ['DATABASE_URI', 'DATABASE_URL'],
  ['POMBAL_ADMIN_KEY', 'ADMIN_KEY'],
  ['port', 'PORT'],
  ['ADMIN_KEY_FIEL', 'ADMIN_KEY_FILE'],
])('the variable %s is taken for a misspelled %s', (name, meant) => {
  expect(readSettings({ [name]: '1' }).misspelled).toEqual([`${name} is not a setting: did you mean ${meant}?`])
})

test('variables of other programs and right names are not misspelled', () => {
  const others = {
    PATH: '',
    HOME: '',
    HOSTNAME: '',
    POSTGRES_PASSWORD: '',
    NODE_ENV: 'test',
    POMBAL_TOKEN: '',
    POMBAL_URL: '',
  }
  expect(readSettings({ ...others, PORT: '3000', RETENTION_DAYS: '30' }).misspelled).toEqual([])
})
