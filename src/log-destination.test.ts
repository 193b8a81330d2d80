import { execFileSync } from 'node:child_process'
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { CONDITION_WITHIN_MS } from '../test/deadlines.ts'
import { LogFile } from './log-destination.ts'

const LINE = `${JSON.stringify({ msg: 'x'.repeat(1_000) })}\n`
const NO_BLOCKING = constants.O_NONBLOCK

/** The `log.lines_dropped` line with its count. */
function countDropped(line: string): number {
  if (`${line}\n` === LINE) return 0
  const { msg, lines } = JSON.parse(line) as { msg: string; lines?: number }
  return msg === 'log.lines_dropped' ? (lines ?? 0) : 0
}

describe.skipIf(process.platform === 'win32')('the file of the log', () => {
  let folder: string
  let path: string
  const descriptors: number[] = []

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'pombal-log-'))
    path = join(folder, 'pipe')
    execFileSync('mkfifo', [path])
  })
  afterEach(() => {
    for (const descriptor of descriptors.splice(0)) closeSync(descriptor)
    rmSync(folder, { recursive: true })
  })

  function open(flags: number): number {
    const descriptor = openSync(path, flags | NO_BLOCKING)
    descriptors.push(descriptor)
    return descriptor
  }

  function drain(reader: number): string {
    const buffer = Buffer.alloc(65_536)
    let text = ''
    try {
      for (let length = 1; length > 0; text += buffer.toString('utf8', 0, length)) length = readSync(reader, buffer)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
    }
    return text
  }

  test('buffers lines for a slow reader, drops those beyond the limit, and logs how many were dropped', async () => {
    const reader = open(constants.O_RDONLY)
    const file = new LogFile(open(constants.O_WRONLY))
    let written = 0
    const write = () => {
      file.write([LINE])
      written += 1
    }
    while (written < 10_000) write()
    let text = ''
    await vi.waitFor(() => {
      text += drain(reader)
      // Accepted once the buffer is below its limit.
      write()
      expect(text.includes('log.lines_dropped')).toBe(true)
    }, CONDITION_WITHIN_MS)
    await vi.waitFor(() => {
      text += drain(reader)
      const lines = text.split('\n').slice(0, -1)
      const dropped = lines.reduce((sum, line) => sum + countDropped(line), 0)
      expect(dropped).toBeGreaterThan(1_000)
      expect(lines.filter(line => `${line}\n` === LINE).length + dropped).toBe(written)
    }, CONDITION_WITHIN_MS)
  })

  test('loses no line if the reader returns in time', async () => {
    const reader = open(constants.O_RDONLY)
    const file = new LogFile(open(constants.O_WRONLY))
    for (let index = 0; index < 1_000; index += 1) file.write([LINE])
    let text = ''
    await vi.waitFor(() => {
      text += drain(reader)
      expect(text.length).toBe(LINE.length * 1_000)
    }, CONDITION_WITHIN_MS)
    expect(text === LINE.repeat(1_000)).toBe(true)
  })

  test('continues with whole lines after a reader disconnected in the middle of one', () => {
    const reader = openSync(path, constants.O_RDONLY | NO_BLOCKING)
    const file = new LogFile(open(constants.O_WRONLY))
    for (let index = 0; index < 100; index += 1) file.write([LINE])
    drain(reader)
    closeSync(reader)
    file.write([LINE])
    file.end()
    file.write([LINE])
    const other = open(constants.O_RDONLY)
    file.write([LINE])
    const lines = drain(other)
      .split('\n')
      .filter(line => line !== '')
    expect(lines).toHaveLength(2)
    expect(countDropped(lines[0] ?? '')).toBeGreaterThan(1)
    expect(`${lines[1]}\n`).toBe(LINE)
  })

  test('waits for a slow reader only for a second at the end', () => {
    const reader = open(constants.O_RDONLY)
    const file = new LogFile(open(constants.O_WRONLY))
    for (let index = 0; index < 100; index += 1) file.write([LINE])
    const waits = vi.spyOn(Atomics, 'wait')
    onTestFinished(() => waits.mockRestore())
    file.end()
    expect(waits.mock.calls.reduce((sum, [, , , waitMs]) => sum + (waitMs ?? 0), 0)).toBe(1_000)
    drain(reader)
    file.end()
  })
})
