import { pino } from 'pino'
import { expect, test } from 'vitest'
import type { DiscardOutcome, FoundMedia, MediaRows } from '../store/media/media.ts'
import { MediaLibrary } from './media-library.ts'

const STORED = { kind: 'stored' } as FoundMedia

/** A library whose storage notes what is removed, and whose files are given up before they are finished. */
function setUp(discarded: DiscardOutcome) {
  const removed: string[] = []
  const rows: Pick<MediaRows, 'begin' | 'extend' | 'finish' | 'discard' | 'erase' | 'find'> = {
    begin: async () => 'begun',
    extend: async () => false,
    finish: async () => ({ kind: 'given_up' }),
    discard: async () => discarded,
    erase: async () => false,
    find: async () => STORED,
  }
  const library = new MediaLibrary({
    rows: rows as MediaRows,
    storage: {
      async write(_, bytes) {
        for await (const _part of bytes);
      },
      read: async () => null,
      remove: async name => void removed.push(name),
      check: async () => undefined,
      close: async () => undefined,
    },
    retentionMs: 1_000,
    quotaBytes: 1_000,
    bytesPerMinute: 1_000,
    guard: { checkLiteral: () => 'allowed' },
    logger: pino({ level: 'silent' }),
    now: () => 0,
    onDoomed: () => undefined,
  })
  return { library, removed }
}

async function* three(): AsyncGenerator<Uint8Array> {
  yield Buffer.from('abc')
}

test.each([
  ['another node gave it up, because its last bytes may have arrived later', 'given_up', 1],
  ['its commit has succeeded', 'stored', 0],
  ['the cleaning removes it', 'doomed', 0],
] as const)('an upload that cannot be finished: %s', async (_why, discarded, count) => {
  const { library, removed } = setUp(discarded)
  const upload = {
    bytes: three(),
    length: 3,
    type: 'text/plain',
    filename: null,
    ifDeleted: 'invalid_token' as const,
    checkAgain: async () => undefined,
  }
  await expect(library.upload('inst_1', upload)).rejects.toMatchObject({ code: 'service_unavailable' })
  expect(removed).toHaveLength(count)
  for (const name of removed) expect(name).toMatch(/^inst_1\//)
})

test('only one chat of an instance has its files erased at a time', () => {
  const { library } = setUp('stored')
  {
    using _ = library.beginErasure('inst_1')
    expect(() => library.beginErasure('inst_1')).toThrow(expect.objectContaining({ code: 'too_many_transfers' }))
    library.beginErasure('inst_2')[Symbol.dispose]()
  }
  library.beginErasure('inst_1')[Symbol.dispose]()
})

test('a file that is uploaded again while it is being erased is not reported as erased', async () => {
  const { library } = setUp('stored')
  await expect(library.erase('inst_1', 'med_1')).rejects.toMatchObject({ code: 'service_unavailable' })
})
