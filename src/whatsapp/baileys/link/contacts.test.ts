import { EventEmitter } from 'node:events'
import type { WASocket } from 'baileys'
import { expect, test } from 'vitest'
import type { LibraryCalls } from '../library-scope.ts'
import type { CredentialStore } from '../signal/credential-store.ts'
import { readAddressBook, reportContacts } from './contacts.ts'

const CONTACT = { id: '5511987654321@s.whatsapp.net', name: 'Ana' }

/** A socket that holds events back until it is flushed, as Baileys' socket does. */
function setUp({ hasKey = true, isRead = true } = {}) {
  const emitter = new EventEmitter()
  const heard: unknown[] = []
  const stored = new Map<string, unknown>()
  const held: (() => void)[] = []
  const ev = Object.assign(emitter, {
    flush: () => {
      for (const emit of held.splice(0)) emit()
    },
  })
  const lidMapping = { getPNForLID: async () => null, getLIDForPN: async () => null }
  const socket = {
    ev,
    signalRepository: { lidMapping },
    resyncAppState: async () => {
      if (!isRead) return
      stored.set('critical_unblock_low', { version: 1 })
      held.push(() => emitter.emit('contacts.upsert', [CONTACT]))
    },
  } as unknown as WASocket
  const credentials = {
    creds: hasKey ? { myAppStateKeyId: 'key' } : {},
    write: async ([row]: { id: string }[]) => void stored.delete(row!.id),
    read: async () => stored,
  } as unknown as CredentialStore
  const calls = { inBackground: (_: string, work: () => Promise<unknown>) => void work() } as unknown as LibraryCalls
  const events = {
    contacts: (contacts: unknown) => void heard.push(contacts),
    addressBookReadable: () => undefined,
    addressBookChanging: async () => undefined,
    addressBookReported: () => undefined,
  }
  const { reported } = reportContacts(socket, { events, calls })
  return { heard, read: () => readAddressBook(socket, credentials, reported) }
}

test('the address book counts as read once its contacts are reported', async () => {
  const { heard, read } = setUp()
  expect(await read()).toBe(true)
  expect(heard).toMatchObject([[{ chat: '5511987654321', name: 'Ana' }]])
})

test.each([
  ['without the key', { hasKey: false }],
  ['if Baileys gives up', { isRead: false }],
])('the address book does not count as read %s', async (_, options) => {
  const { heard, read } = setUp(options)
  expect(await read()).toBe(false)
  expect(heard).toEqual([])
})
