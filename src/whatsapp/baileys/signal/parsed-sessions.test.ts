import { SessionRecord } from 'libsignal'
import { expect, test } from 'vitest'
import { hasOpenSession, patchLibraries } from './library-patches.ts'

const KEY = Buffer.alloc(33, 1).toString('base64')
const CLOSED = { closed: 1_700_000_000_000 }
const OPEN = { closed: -1 }

/** A record as it is stored, with one session for each of `sessions`. */
function stored(...sessions: { closed: number; registrationId?: number }[]): Uint8Array {
  const entries = sessions.map(({ closed, registrationId = 7 }, index) => [
    `base${index}`,
    {
      registrationId,
      currentRatchet: {
        ephemeralKeyPair: { pubKey: KEY, privKey: KEY },
        lastRemoteEphemeralKey: KEY,
        previousCounter: 0,
        rootKey: KEY,
      },
      indexInfo: { baseKey: KEY, baseKeyType: 1, closed, used: 1, created: 1, remoteIdentityKey: KEY },
      _chains: { [KEY]: { chainKey: { counter: 3, key: KEY }, chainType: 1, messageKeys: {} } },
    },
  ])
  return { version: 'v1', _sessions: Object.fromEntries(entries) } as unknown as Uint8Array
}

/** libsignal's types omit the methods that change a record. */
type Changeable = SessionRecord & { deleteAllSessions(): void }

patchLibraries()

test('a record that was serialised is returned without parsing, but only the first time', () => {
  const record = SessionRecord.deserialize(stored(OPEN))
  const kept = record.serialize()
  expect(SessionRecord.deserialize(kept)).toBe(record)
  const parsed = SessionRecord.deserialize(kept)
  expect(parsed).not.toBe(record)
  expect(parsed.serialize()).toEqual(kept)
})

test('an operation that fails after it has changed the record leaves the stored state', () => {
  const kept = SessionRecord.deserialize(stored(OPEN)).serialize()
  const changed = SessionRecord.deserialize(kept) as Changeable
  changed.deleteAllSessions()
  expect(SessionRecord.deserialize(kept).haveOpenSession()).toBe(true)
})

test('another object with the content of a stored record is parsed', () => {
  const record = SessionRecord.deserialize(stored(OPEN))
  const read = structuredClone(record.serialize())
  expect(SessionRecord.deserialize(read)).not.toBe(record)
})

test.each([
  { title: 'no session', sessions: [] },
  { title: 'an open session', sessions: [OPEN] },
  { title: 'a closed session', sessions: [CLOSED] },
  { title: 'an open session after a closed one', sessions: [CLOSED, OPEN] },
])('$title: hasOpenSession agrees with libsignal', ({ sessions }) => {
  const record = stored(...sessions)
  expect(hasOpenSession(record)).toBe(SessionRecord.deserialize(record).haveOpenSession())
  expect(hasOpenSession(record)).toBe(sessions.includes(OPEN))
})
