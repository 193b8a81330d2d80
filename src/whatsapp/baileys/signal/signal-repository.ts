import { AsyncLocalStorage } from 'node:async_hooks'
import {
  DEFAULT_CONNECTION_CONFIG,
  jidDecode,
  type SignalAuthState,
  type SignalKeyStoreWithTransaction,
  type SignalRepositoryWithLIDStore,
} from 'baileys'
import type { ILogger } from 'baileys/lib/Utils/logger.js'
import { BoundedMap } from '../../../kit/bounded-map.ts'
import { userOf } from '../addresses.ts'
import { isRefusal } from '../look-up.ts'
import type { Journal } from './journal.ts'
import { hasOpenSession, patchLibraries } from './library-patches.ts'
import { guardMapping, type LIDMappingStore } from './lid-mapping.ts'

type Outside = <T>(work: () => T) => T
type PnToLid = Parameters<typeof DEFAULT_CONNECTION_CONFIG.makeSignalRepository>[2]

const CONTACTS_WITHOUT_LID = 1_000
const NO_LID_FRESH_MS = 600_000
/** After an error instead of an answer. */
const NO_LID_REFUSED_MS = 30_000

/** What a sender key may be for: a group, a broadcast list or the statuses. */
const SHARED_CHAT = /^([\d-]{1,60}@g\.us|\w{1,60}@broadcast)$/
/** The message with a sender key has about 80 bytes. */
const MAX_SENDER_KEY_BYTES = 1_000

/** An empty message with its padding. Baileys acknowledges it as received. */
const EMPTY_MESSAGE = Uint8Array.of(1)

/** Called with each plaintext before Baileys acknowledges the message. Baileys sends no receipt until this resolves. */
type OnDecrypted = (ciphertext: Uint8Array, plaintext: Uint8Array) => Promise<void>

/** The functions of the service that the repository needs. */
interface SignalService {
  journal: Journal
  /** The placeholder content, if `IncomingMessages` put these bytes in place of a withheld view-once message. They are not encrypted. */
  standInOf(ciphertext: Uint8Array): Uint8Array | undefined
  onDecrypted: OnDecrypted
  /** True if the message is already recorded as an event. */
  isRecorded(ciphertext: Uint8Array): Promise<boolean>
  settled(): Promise<void>
  onClose(): void
}

/** Runs `work` outside the caller's transaction, once earlier work for the same key has ended. */
type Alone = <T>(key: string, work: () => Promise<T>) => Promise<T>

/**
 * Baileys' Signal repository with seven changes.
 *
 * 1. Each change of a session is written before its result is used. Baileys commits the keys of a send after it writes to
 *    the socket: after a crash in between, a counter would be used twice and the recipient could not decrypt. Each operation
 *    therefore runs in its own transaction, not in that of the send, and `sendDurably` delays the frame until the write
 *    is durable. Waiting here instead would block all other sends, because each message is also encrypted for our own
 *    phone, and Baileys does that one message at a time.
 * 2. Operations on one contact are serialised. Baileys locks by JID, but number and LID share one session.
 * 3. A plaintext is written to the journal in the commit that consumes its key, and recorded as an event before Baileys
 *    sends the receipt. Either WhatsApp still delivers the message again, or we have it. If a message arrives whose key
 *    was already used, it is acknowledged if it is recorded, and otherwise requested again.
 * 4. Messages can be sent to contacts without a LID (`withNumbersForMissingLids`).
 * 5. A session is parsed once, not at every message (`library-patches.ts`).
 * 6. Stale and wrong pairs of numbers and LIDs are ignored (`lid-mapping.ts`).
 * 7. Sender keys that cannot be used are not stored.
 */
export function createSignalRepository(
  auth: SignalAuthState,
  logger: ILogger,
  pnToLid: PnToLid,
  service: SignalService,
): SignalRepositoryWithLIDStore {
  patchLibraries()
  const base = DEFAULT_CONNECTION_CONFIG.makeSignalRepository(auth, logger, pnToLid && cachingMisses(pnToLid))
  const keys = auth.keys as SignalKeyStoreWithTransaction
  const outside = AsyncLocalStorage.snapshot()
  const alone = createLock(outside)
  const mapping = guardMapping(base.lidMapping, auth)
  const once = createDecryption(service, keys, alone, outside)

  /** The lock key of a contact: the same for its number and its LID, which share a session in Baileys. */
  async function contactOf(jid: string): Promise<string> {
    const lid = jid.includes('lid') ? jid : await mapping.getLIDForPN(jid)
    return jidDecode(lid ?? jid)?.user ?? jid
  }

  /** Replaces Baileys' function, which is called for each device at every send and parses the session each time. */
  async function validateSession(jid: string): Promise<{ exists: boolean }> {
    try {
      const lid = jid.includes('lid') ? jid : await mapping.getLIDForPN(jid)
      const address = base.jidToSignalProtocolAddress(lid ?? jid)
      const { [address]: stored } = await keys.get('session', [address])
      return { exists: stored !== undefined && hasOpenSession(stored) }
    } catch {
      return { exists: false }
    }
  }

  return {
    ...base,
    lidMapping: withNumbersForMissingLids(base.lidMapping),
    async encryptMessage(message) {
      return alone(await contactOf(message.jid), () => base.encryptMessage(message))
    },
    async injectE2ESession(session) {
      return alone(await contactOf(session.jid), () => base.injectE2ESession(session))
    },
    async decryptMessage(message) {
      return once(await contactOf(message.jid), message.ciphertext, () => base.decryptMessage(message))
    },
    decryptGroupMessage(message) {
      return once(message.group, message.msg, () => base.decryptGroupMessage(message))
    },
    encryptGroupMessage(message) {
      return alone(message.group, () => base.encryptGroupMessage(message))
    },
    async processSenderKeyDistributionMessage(message) {
      const { groupId, axolotlSenderKeyDistributionMessage: key } = message.item
      // Contacts choose the ID and the key, and both are stored and cached.
      if (!SHARED_CHAT.test(groupId ?? '') || (key?.length ?? 0) > MAX_SENDER_KEY_BYTES) return
      await alone(groupId!, () => base.processSenderKeyDistributionMessage(message))
    },
    getSenderKeyDistributionMessage(message) {
      return alone(message.group, () => base.getSenderKeyDistributionMessage(message))
    },
    validateSession: AsyncLocalStorage.bind(validateSession),
    getSessionInfo: AsyncLocalStorage.bind(base.getSessionInfo),
    hasSenderKey: AsyncLocalStorage.bind(base.hasSenderKey),
    deleteSession: AsyncLocalStorage.bind(base.deleteSession),
    async migrateSession(from, to) {
      return alone(await contactOf(to), () => base.migrateSession(from, to))
    },
    close() {
      service.onClose()
      base.close?.()
    },
  }
}

function createLock(outside: Outside): Alone {
  const locks = new Map<string, Promise<unknown>>()
  return async (key, work) => {
    const earlier = locks.get(key)
    const { promise: ended, resolve: end } = Promise.withResolvers<void>()
    locks.set(key, ended)
    try {
      await earlier
      return await outside(work)
    } finally {
      end()
      if (locks.get(key) === ended) locks.delete(key)
    }
  }
}

/** Decrypts a message at most once; see point 3 of `createSignalRepository`. */
function createDecryption(
  service: SignalService,
  keys: SignalKeyStoreWithTransaction,
  alone: Alone,
  outside: Outside,
): (key: string, ciphertext: Uint8Array, decrypt: () => Promise<Uint8Array>) => Promise<Uint8Array> {
  return async (key, ciphertext, decrypt) => {
    let plaintext = service.standInOf(ciphertext) ?? (await outside(() => service.journal.find(ciphertext)))
    try {
      plaintext ??= await alone(key, () =>
        keys.transaction(async () => {
          const fresh = await decrypt()
          await keys.set(service.journal.entryFor(ciphertext, fresh))
          return fresh
        }, key),
      )
    } catch (error) {
      if (await outside(() => service.isRecorded(ciphertext))) return EMPTY_MESSAGE
      // Baileys does not request the message again if libsignal's error says that its key was used, so the error is replaced.
      throw new Error('The message cannot be decrypted.', { cause: error })
    }
    await service.settled()
    await outside(() => service.onDecrypted(ciphertext, plaintext))
    service.journal.recorded(ciphertext)
    return plaintext
  }
}

/**
 * Baileys requests the keys of a contact by LID, and requests none if the LID is unknown. Here the number replaces a missing
 * LID, as the address and as the name of the session.
 */
function withNumbersForMissingLids(base: LIDMappingStore): LIDMappingStore {
  const getLIDsForPNs: LIDMappingStore['getLIDsForPNs'] = async pns => {
    const found = (await base.getLIDsForPNs(pns)) ?? []
    const users = new Set(found.map(({ pn }) => userOf(pn)))
    const rest = pns.filter(pn => !users.has(userOf(pn)))
    return [...found, ...rest.map(pn => ({ pn, lid: pn }))]
  }
  return Object.assign(Object.create(base) as LIDMappingStore, {
    getLIDsForPNs,
    getLIDForPN: base.getLIDForPN.bind(base),
  })
}

/**
 * Caches negative answers, because Baileys queries a missing LID at every use of a session. An error from WhatsApp counts as a
 * negative answer, as a timeout does in Baileys. If it were thrown, the message could not be decrypted, Baileys would acknowledge
 * it, and it would be lost.
 */
function cachingMisses(pnToLid: NonNullable<PnToLid>): NonNullable<PnToLid> {
  const missingUntil = new BoundedMap<string, number>(CONTACTS_WITHOUT_LID)
  return async pns => {
    const due = pns.filter(pn => performance.now() >= (missingUntil.get(pn) ?? 0))
    if (due.length === 0) return []
    let freshMs = NO_LID_FRESH_MS
    const found = await pnToLid(due).catch(error => {
      if (!isRefusal(error)) throw error
      freshMs = NO_LID_REFUSED_MS
      return []
    })
    for (const pn of due) {
      if (!found?.some(one => userOf(one.pn) === userOf(pn))) missingUntil.set(pn, performance.now() + freshMs)
    }
    return found
  }
}
