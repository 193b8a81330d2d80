import { AsyncLocalStorage } from 'node:async_hooks'
import { setImmediate } from 'node:timers/promises'
import { type Chat, type Contact, isJidGroup, type WASocket } from 'baileys'
import type { HeardContact } from '../../../domain/recipients/contact.ts'
import { lidAddressOf, numberOf } from '../addresses.ts'
import type { LibraryCalls } from '../library-scope.ts'
import type { LidMapping } from '../parsing/incoming.ts'
import type { CredentialStore } from '../signal/credential-store.ts'
import type { LinkEvents } from './events.ts'

/** The part of the settings shared by an account's devices that contains the phone's address book. */
const ADDRESS_BOOK = 'critical_unblock_low'
/** The type of the keys with the version of each part that was read. */
export const VERSION = 'app-state-sync-version'
/** The number of contacts whose numbers are looked up concurrently. */
const STEP = 100
/**
 * Baileys itself gives up after two answers with a collection that it cannot use. A query whose answer is missing, or lacks the
 * collection, it repeats for ever (see `countReads`). One more query allows for a lost answer.
 */
const MAX_READS = 3

interface ContactReports {
  events: Pick<LinkEvents, 'contacts' | 'addressBookReadable' | 'addressBookChanging' | 'addressBookReported'>
  calls: LibraryCalls
}

/**
 * Reports the contacts and chats in the phone's history and address book. Names in messages are recorded with the messages.
 * @returns `reported` resolves when everything that Baileys has emitted is reported. `versions` must watch the socket's keys.
 */
export function reportContacts(
  { ev, signalRepository }: WASocket,
  { events, calls }: ContactReports,
): { versions: VersionWatch; reported: () => Promise<unknown> } {
  let reported: Promise<unknown> = Promise.resolve()
  const report = (contacts: readonly Contact[], chats: readonly Chat[] = []) =>
    calls.inBackground('contacts', () => {
      const report = heardOf(contacts, chats, signalRepository.lidMapping).then(heard => {
        if (heard.length > 0) events.contacts(heard)
      })
      reported = Promise.all([reported, report])
      return report
    })
  ev.on('messaging-history.set', ({ contacts, chats }) => report(contacts, chats))
  ev.on('contacts.upsert', contacts => report(contacts))
  ev.on('creds.update', ({ myAppStateKeyId }) => {
    if (myAppStateKeyId) events.addressBookReadable()
  })
  const versions = new VersionWatch(events, () =>
    calls.inBackground('contacts', async () => {
      // Baileys emits the contacts right after its transaction, and may hold them back.
      await setImmediate()
      ev.flush()
      await reported
      events.addressBookReported()
    }),
  )
  return { versions, reported: () => reported }
}

/** Watches how Baileys' transactions read and store the versions of the account's settings. */
export class VersionWatch {
  readonly #current = new AsyncLocalStorage<{ reads: Map<string, number>; storesAddressBook: boolean }>()
  readonly #events: Pick<LinkEvents, 'addressBookChanging'>
  readonly #onStored: () => void

  /** @param onStored called after the transaction that has stored a version of the address book, or has failed to */
  constructor(events: Pick<LinkEvents, 'addressBookChanging'>, onStored: () => void) {
    this.#events = events
    this.#onStored = onStored
  }

  async inTransaction<T>(transaction: () => Promise<T>): Promise<T> {
    const running = { reads: new Map<string, number>(), storesAddressBook: false }
    try {
      return await this.#current.run(running, transaction)
    } finally {
      if (running.storesAddressBook) this.#onStored()
    }
  }

  /**
   * Ends a transaction that queries WhatsApp for a collection of settings again and again, because the answer is missing or does
   * not contain the collection. Baileys would never stop, and would handle no other message in the meantime.
   * @throws Error at one read too many
   */
  countReads(collections: readonly string[]): void {
    const reads = this.#current.getStore()?.reads
    if (!reads) return
    for (const id of collections) {
      const count = (reads.get(id) ?? 0) + 1
      if (count > MAX_READS) throw new Error('WhatsApp does not answer a query for settings of the account.')
      reads.set(id, count)
    }
  }

  /**
   * Reports a change of the address book before its version is stored. Baileys stores the version that it has read, and
   * only later emits the contacts. After a kill in between, it would never read those contacts again.
   */
  async beforeWrite(versions: { [collection: string]: unknown }): Promise<void> {
    const running = this.#current.getStore()
    if (versions[ADDRESS_BOOK]) {
      if (running) running.storesAddressBook = true
      await this.#events.addressBookChanging()
    }
    for (const id of Object.keys(versions)) running?.reads.delete(id)
  }
}

/**
 * Reads the whole address book. Its contacts are reported as events before this resolves.
 * @returns false if it was not read, such as before the phone has sent the key. Read it again later.
 */
export async function readAddressBook(
  { resyncAppState, ev }: Pick<WASocket, 'resyncAppState' | 'ev'>,
  credentials: Pick<CredentialStore, 'creds' | 'write' | 'read'>,
  reported: () => Promise<unknown>,
): Promise<boolean> {
  if (!credentials.creds.myAppStateKeyId) return false
  // Reads from the beginning, because a kill may have lost contacts that were read earlier.
  credentials.write([{ type: VERSION, id: ADDRESS_BOOK, value: null }])
  await resyncAppState([ADDRESS_BOOK], true)
  // Baileys holds the contacts back for 100 ms, or after linking until the history has arrived.
  ev.flush()
  await reported()
  // Baileys also resolves if it could not read the address book.
  return (await credentials.read(VERSION, [ADDRESS_BOOK])).size > 0
}

async function heardOf(
  contacts: readonly Contact[],
  chats: readonly Chat[],
  mapping: LidMapping,
): Promise<HeardContact[]> {
  const heard: HeardContact[] = []
  for (let at = 0; at < contacts.length; at += STEP)
    heard.push(...(await Promise.all(contacts.slice(at, at + STEP).map(contact => toHeard(contact, mapping)))).flat())
  for (let at = 0; at < chats.length; at += STEP)
    heard.push(...(await Promise.all(chats.slice(at, at + STEP).map(chat => toChat(chat, mapping)))).flat())
  return heard
}

async function toHeard(contact: Contact, mapping: LidMapping): Promise<HeardContact[]> {
  const { id, lid, phoneNumber, name, notify, username } = contact
  const address = await addressOf([id, phoneNumber, lid], mapping)
  if (address === null) return []
  const names = { name: name || null, pushName: notify || null, username: username?.replace(/^@/, '') || null }
  return [{ ...address, ...names, lastMessageAt: null }]
}

async function toChat({ id, conversationTimestamp }: Chat, mapping: LidMapping): Promise<HeardContact[]> {
  const lastMessageAt = Number(conversationTimestamp ?? 0) * 1_000
  if (!id || !(lastMessageAt > 0 && lastMessageAt <= Date.now())) return []
  const nameless = { name: null, pushName: null, username: null, lastMessageAt }
  if (isJidGroup(id)) return [{ chat: id, lid: null, ...nameless }]
  const address = await addressOf([id], mapping)
  return address === null ? [] : [{ ...address, ...nameless }]
}

/** The number and the LID among the addresses of a person; null if there is neither. */
async function addressOf(
  jids: readonly (string | undefined)[],
  mapping: LidMapping,
): Promise<Pick<HeardContact, 'chat' | 'lid'> | null> {
  const lid = jids.map(lidAddressOf).find(found => found !== null) ?? null
  const number = jids.map(numberOf).find(found => found !== undefined)
  const mapped = number ?? (lid === null ? undefined : numberOf(await mapping.getPNForLID(lid).catch(() => null)))
  const chat = mapped ?? lid
  return chat === null ? null : { chat, lid }
}
