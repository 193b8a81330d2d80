import { randomBytes } from 'node:crypto'
import { initAuthCreds, type SignalKeyStoreWithTransaction } from 'baileys'
import { SenderKeyDistributionMessage } from 'baileys/lib/Signal/Group/index.js'
import { expect, test } from 'vitest'
import { Journal } from './journal.ts'
import { createSignalRepository } from './signal-repository.ts'

const AUTHOR = '990000000000001:2@lid'
const GROUP = '120363000000000042@g.us'
const quiet = () => undefined
const logger = {
  level: 'silent',
  child: () => logger,
  trace: quiet,
  debug: quiet,
  info: quiet,
  warn: quiet,
  error: quiet,
}

/** A repository with its rows in memory. */
function openRepository() {
  const rows = new Map<string, unknown>()
  const keys: SignalKeyStoreWithTransaction = {
    get: async (type, ids) => Object.fromEntries(ids.map(id => [id, rows.get(`${type}/${id}`)])) as never,
    set: async data => {
      for (const [type, values] of Object.entries(data))
        for (const [id, value] of Object.entries(values)) rows.set(`${type}/${id}`, value)
    },
    transaction: work => work(),
    isInTransaction: () => false,
  }
  const service = {
    journal: new Journal({ read: async () => new Map(), write: async () => undefined } as never),
    standInOf: () => undefined,
    onDecrypted: async () => undefined,
    isRecorded: async () => false,
    settled: async () => undefined,
    onClose: () => undefined,
  }
  return { rows, repository: createSignalRepository({ creds: initAuthCreds(), keys }, logger, undefined, service) }
}

const keyOf = (bytes: number) => new SenderKeyDistributionMessage(1, 0, randomBytes(bytes), randomBytes(33)).serialize()

test.each([
  ['a group', GROUP, 32, true],
  ['a group of the old form', '5511987654321-1400000000@g.us', 32, true],
  ['the statuses', 'status@broadcast', 32, true],
  ['a chat', '5511987654321@s.whatsapp.net', 32, false],
  ['any text', 'x'.repeat(100_000), 32, false],
  ['a very long group', `${'1'.repeat(100_000)}@g.us`, 32, false],
  ['a group, with a very long key', GROUP, 100_000, false],
])('a sender key that a contact sends for %s is stored only if it can be used', async (_, groupId, bytes, isStored) => {
  const { rows, repository } = openRepository()
  const item = { groupId, axolotlSenderKeyDistributionMessage: keyOf(bytes) }
  await repository.processSenderKeyDistributionMessage({ authorJid: AUTHOR, item })
  expect([...rows.keys()].some(key => key.startsWith('sender-key/'))).toBe(isStored)
})
