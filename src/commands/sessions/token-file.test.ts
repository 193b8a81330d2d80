import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { TokenFile } from './token-file.ts'

const disk = vi.hoisted(() => ({ freeBytes: Number.POSITIVE_INFINITY }))

/** Writes at most ten bytes at once. */
vi.mock('node:fs', async importOriginal => {
  const original = await importOriginal<typeof import('node:fs')>()
  const writeSync = (file: number, bytes: Buffer, from: number) => {
    const count = Math.min(10, bytes.length - from, disk.freeBytes)
    disk.freeBytes -= count
    if (count === 0) throw new Error('The disk is full.')
    return original.writeSync(file, bytes, from, count)
  }
  return { ...original, writeSync }
})

test('every line is complete, even if a write is short or fails in the middle', () => {
  const folder = mkdtempSync(join(tmpdir(), 'pombal-tokens-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const tokens = new TokenFile(join(folder, 'tokens.jsonl'))
  const lines = ['inst_1', 'inst_2', 'inst_3'].map(instanceId => ({
    instanceId,
    name: 'x',
    phone: '1',
    token: 'secret',
  }))
  tokens.add(lines[0]!)
  disk.freeBytes = 25
  expect(() => tokens.add(lines[1]!)).toThrow('The disk is full.')
  disk.freeBytes = Number.POSITIVE_INFINITY
  tokens.add(lines[2]!)
  expect(
    readFileSync(tokens.path, 'utf8')
      .trim()
      .split('\n')
      .map(line => JSON.parse(line)),
  ).toEqual([lines[0], lines[2]])
  expect([tokens.has('inst_1'), tokens.has('inst_2')]).toEqual([true, false])
  tokens.close()
})

test('a file that others can read is refused, but not on Windows, where every file looks like one', () => {
  const { platform } = process
  const folder = mkdtempSync(join(tmpdir(), 'pombal-tokens-'))
  onTestFinished(() => {
    Object.defineProperty(process, 'platform', { value: platform })
    rmSync(folder, { recursive: true })
  })
  const path = join(folder, 'tokens.jsonl')
  writeFileSync(path, '')
  chmodSync(path, 0o666)
  expect(() => new TokenFile(path)).toThrow('can be read by others')
  Object.defineProperty(process, 'platform', { value: 'win32' })
  new TokenFile(path).close()
})
