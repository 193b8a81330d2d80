import { execFileSync } from 'node:child_process'
import {
  closeSync,
  ftruncateSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { linkedSession, sessionFiles, writeFiles } from '../../sessions/linked-session.ts'
import { runCommand } from '../../sessions/run-command.ts'
import { ADMIN_KEY, ApiHarness } from '../api/harness.ts'

const MIB = 1024 * 1024
const AN_HOUR_AGO = Date.now() / 1_000 - 3_600
const SECRET = 'a line of a file that belongs to somebody else'

let folder: string
let dataDir: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pombal-hostile-'))
  dataDir = mkdtempSync(join(tmpdir(), 'pombal-import-'))
})
afterEach(() => {
  for (const path of [folder, dataDir]) rmSync(path, { recursive: true, force: true })
})

/** A session of which one file is replaced by something else. */
function hostile(name: string, file: string, replace: (path: string) => void): string {
  const session = join(folder, name)
  writeFiles(session, sessionFiles(linkedSession()))
  for (const one of readdirSync(session)) utimesSync(join(session, one), AN_HOUR_AGO, AN_HOUR_AGO)
  const path = join(session, file)
  rmSync(path, { recursive: true, force: true })
  replace(path)
  return session
}

function sparse(path: string, bytes: number): void {
  const file = openSync(path, 'w')
  ftruncateSync(file, bytes)
  closeSync(file)
}

test('files of a folder that are links, pipes, devices, folders or huge are not read, or are rejected', async () => {
  const foreign = join(folder, 'foreign.txt')
  writeFileSync(foreign, SECRET)
  const fifo = (path: string) => execFileSync('mkfifo', [path])
  const creds: [name: string, replace: (path: string) => void, sentence: string][] = [
    ['link', path => symlinkSync(foreign, path), 'cut off'],
    ['loop', path => symlinkSync('creds.json', path), 'holds no credentials'],
    ['broken', path => symlinkSync('/nowhere', path), 'holds no credentials'],
    ['device', path => symlinkSync('/dev/zero', path), 'holds no credentials'],
    ['pipe', fifo, 'holds no credentials'],
    ['folder', path => mkdirSync(path), 'holds no credentials'],
    ['huge', path => sparse(path, 17 * MIB), 'cut off'],
    ['deep', path => writeFileSync(path, `{"me":${'['.repeat(1_000_000)}`), 'cut off'],
    ['zip', path => writeFileSync(path, gzipSync(Buffer.alloc(10 * MIB))), 'cut off'],
    ['number', path => writeFileSync(path, '1e999'), 'holds no credentials'],
  ]
  for (const [name, replace, sentence] of creds) {
    const { code, output } = await runCommand(['import-sessions', '--stopped', hostile(name, 'creds.json', replace)], {
      DATA_DIR: dataDir,
    })
    expect({ name, code, output }).toMatchObject({ code: 1, output: expect.stringContaining(sentence) })
    expect(output, name).not.toContain(SECRET)
  }
  expect(readdirSync(dataDir)).toEqual([])
  expect(readFileSync(foreign, 'utf8')).toBe(SECRET)
})

test('keys that are links, pipes or huge count as unreadable or absent, and the rest is imported', async () => {
  const session = hostile('odd', 'session-5511900000001.0.json', path => sparse(path, 17 * MIB))
  symlinkSync('/dev/zero', join(session, 'session-5511900000002.0.json'))
  symlinkSync('/etc/hostname', join(session, 'session-5511900000003.0.json'))
  execFileSync('mkfifo', [join(session, 'session-5511900000004.0.json')])
  mkdirSync(join(session, 'session-5511900000005.0.json'))
  symlinkSync('.', join(session, 'again'))
  const { code, output } = await runCommand(['import-sessions', '--stopped', session], { DATA_DIR: dataDir })
  expect({ code, output }).toMatchObject({ code: 0, output: expect.stringMatching(/odd +5511987654321 +12 +2 /) })
})

test('files with rows that are huge, deep, binary or full of odd names are refused', async () => {
  const file = (name: string) => join(folder, name)
  sparse(file('huge.jsonl'), 257 * MIB)
  writeFileSync(file('zip.json'), gzipSync(Buffer.alloc(50 * MIB)))
  writeFileSync(file('deep.json'), `{"creds":${'{"a":'.repeat(500_000)}`)
  const nested = `${'['.repeat(500_000)}${']'.repeat(500_000)}`
  writeFileSync(file('nested.jsonl'), `{"session":"a","key":"creds","value":${nested}}\n`)
  writeFileSync(file('null.jsonl'), '{"session":"a","key":"creds","value":null}\n')
  const rows = ['__proto__', 'constructor', '', '../../etc', '\0'].map(session => ({
    session,
    key: 'creds',
    value: '{}',
  }))
  writeFileSync(file('names.jsonl'), rows.map(row => JSON.stringify(row)).join('\n'))
  symlinkSync('/dev/zero', file('zero.json'))
  for (const name of readdirSync(folder)) {
    const args = ['import-sessions', '--stopped', '--keys', folder, file(name)]
    const { code, output } = await runCommand(args, { DATA_DIR: dataDir })
    expect({ name, code }).toEqual({ name, code: 1 })
    expect(output, name).not.toMatch(/ {2}at |Error:/)
  }
  expect(readdirSync(dataDir)).toEqual([])
})

test('the call accepts no archive, no compressed body and nothing above its limit', async () => {
  await using api = await ApiHarness.start()
  const body = JSON.stringify({ name: 'Shop', files: Object.fromEntries(sessionFiles(linkedSession())) })
  const post = async (sent: string | Buffer, headers: Record<string, string>) => {
    const response = await fetch(`${api.url}/admin/v1/instances/import`, {
      method: 'POST',
      headers: { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json', ...headers },
      body: sent,
    })
    const { error } = (await response.json()) as { error?: { code: string } }
    return [response.status, error?.code]
  }
  const bomb = gzipSync(Buffer.alloc(200 * MIB, ' '))
  expect((await post(bomb, { 'content-encoding': 'gzip' }))[0]).toBeOneOf([400, 415])
  expect((await post(gzipSync(body), { 'content-encoding': 'gzip' }))[0]).toBeOneOf([400, 415])
  for (const type of ['application/zip', 'application/gzip', 'multipart/form-data; boundary=x'])
    expect((await post(bomb, { 'content-type': type }))[0]).toBe(415)
  expect(await post(Buffer.alloc(9 * MIB, ' '), {})).toEqual([413, 'payload_too_large'])
  expect((await post(`${'['.repeat(4 * MIB)}`, {}))[0]).toBe(400)
  const names = Object.fromEntries(Array.from({ length: 200_000 }, (_, n) => [`x${n}.json`, '']))
  expect(await post(JSON.stringify({ name: 'Shop', files: names }), {})).toEqual([400, 'invalid_session'])
  expect((await api.admin('GET', '/instances')).body.data).toEqual([])
})
