import { type Chat, type Contact, isJidGroup, type WASocket } from 'baileys'
import type { HeardContact } from '../../../domain/recipients/contact.ts'
import { lidAddressOf, numberOf } from '../addresses.ts'
import type { LibraryCalls } from '../library-scope.ts'
import type { LidMapping } from '../parsing/incoming.ts'
import type { CredentialStore } from '../signal/credential-store.ts'
import type { LinkEvents } from './events.ts'

/** The part of the settings shared by an account's devices that contains the phone's address book. */
const ADDRESS_BOOK = 'critical_unblock_low'
/** Contacts whose numbers are looked up at once. */
const STEP = 100

export interface ContactReports {
  events: Pick<LinkEvents, 'contacts' | 'addressBookReadable'>
  calls: LibraryCalls
}

/** Reports the contacts and chats in the phone's history and address book. Names in messages are recorded with the messages. */
export function reportContacts({ ev, signalRepository }: WASocket, { events, calls }: ContactReports): void {
  const report = (contacts: readonly Contact[], chats: readonly Chat[] = []) =>
    calls.inBackground('contacts', async () => {
      const heard = await heardOf(contacts, chats, signalRepository.lidMapping)
      if (heard.length > 0) events.contacts(heard)
    })
  ev.on('messaging-history.set', ({ contacts, chats }) => report(contacts, chats))
  ev.on('contacts.upsert', contacts => report(contacts))
  ev.on('creds.update', ({ myAppStateKeyId }) => {
    if (myAppStateKeyId) events.addressBookReadable()
  })
}

/**
 * Reads the whole address book. Its contacts are reported as events.
 * @returns false if the phone has not sent the key yet
 */
export async function readAddressBook(socket: WASocket, credentials: CredentialStore): Promise<boolean> {
  if (!credentials.creds.myAppStateKeyId) return false
  // From its beginning, because a kill may have lost what was read before.
  credentials.write([{ type: 'app-state-sync-version', id: ADDRESS_BOOK, value: null }])
  await socket.resyncAppState([ADDRESS_BOOK], true)
  return true
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
