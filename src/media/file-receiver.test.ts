import { pino } from 'pino'
import { expect, test } from 'vitest'
import type { ReceiveOutcome } from '../store/media/downloads.ts'
import type { DiscardOutcome } from '../store/media/media.ts'
import { FileReceiver } from './file-receiver.ts'

const TERMS = { quotaBytes: 1_000, retentionMs: 1_000 }

/** A receiver whose calls are noted. @param discarded what the row says when the file is discarded */
function setUp(discarded: DiscardOutcome = 'doomed') {
  const calls: string[] = []
  const logLines: Record<string, unknown>[] = []
  const note =
    <T>(name: string, answer: T) =>
    async () => {
      calls.push(name)
      return answer
    }
  const rows = {
    begin: note('begin', 'begun' as const),
    extend: note('extend', true),
    discard: note('discard', discarded),
    forget: note('forget', undefined),
  }
  const storage = {
    async write(_: string, bytes: AsyncIterable<Uint8Array>) {
      for await (const _part of bytes);
      calls.push('write')
    },
    read: note('read', null),
    remove: note('remove', undefined),
    check: note('check', undefined),
    close: note('close', undefined),
  }
  const logger = pino({}, { write: line => void logLines.push(JSON.parse(line)) })
  const receiver = new FileReceiver(async () => storage, rows, TERMS, logger)
  const receive = (bytes: AsyncIterable<Uint8Array>, outcome: ReceiveOutcome) =>
    receiver.receive('inst_1', { mimetype: 'image/png', size: 3 }, bytes, 0, async () => outcome)
  return { calls, logLines, storage, receive }
}

async function* three(): AsyncGenerator<Uint8Array> {
  yield Buffer.from('abc')
}

// biome-ignore lint/correctness/useYield: a source that fails before its first byte
async function* missing(): AsyncGenerator<Uint8Array> {
  throw new Error('404')
}

test('a file that cannot be fetched stops counting at once', async () => {
  const { calls, receive } = setUp()
  await expect(receive(missing(), 'stored')).rejects.toThrow('404')
  expect(calls).toEqual(['begin', 'discard', 'remove', 'forget'])
})

test.each(['full', 'busy', 'given_up'] as const)('a file that is not stored (%s) is removed at once', async outcome => {
  const { calls, receive } = setUp()
  expect(await receive(three(), outcome)).toBe(outcome)
  expect(calls).toEqual(['begin', 'write', 'discard', 'remove', 'forget'])
})

test('a file stays if an earlier try of its commit has succeeded', async () => {
  const { calls, receive } = setUp('stored')
  expect(await receive(three(), 'given_up')).toBe('given_up')
  expect(calls).toEqual(['begin', 'write', 'discard'])
})

test('a file that another node gave up is removed once more, because its last bytes may have arrived later', async () => {
  const { calls, receive } = setUp('given_up')
  expect(await receive(three(), 'given_up')).toBe('given_up')
  expect(calls).toEqual(['begin', 'write', 'discard', 'remove', 'forget'])
})

test('a file that cannot be removed immediately is reported by its name', async () => {
  const { logLines, storage, receive } = setUp()
  storage.remove = async () => {
    throw new Error('the storage is away')
  }
  await expect(receive(missing(), 'stored')).rejects.toThrow('404')
  const names = { instanceId: 'inst_1', fileId: expect.stringMatching(/^file_/) }
  expect(logLines).toMatchObject([{ msg: 'media.discard_failed', ...names, err: { message: 'the storage is away' } }])
})
