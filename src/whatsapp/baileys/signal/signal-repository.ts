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
import type { Journal } from './journal.ts'
import { keepSessionsWhole } from './session-attempts.ts'

type LIDMappingStore = SignalRepositoryWithLIDStore['lidMapping']
type PnToLid = Parameters<typeof DEFAULT_CONNECTION_CONFIG.makeSignalRepository>[2]

const CONTACTS_WITHOUT_LID = 1_000
const NO_LID_FRESH_MS = 600_000

/**
 * Within a send: `recorded` settles once the message is recorded as handed to WhatsApp; its frame does not leave before.
 * What follows from a send, and from the end of its socket, runs within it too: so it counts for `link` only.
 */
export const sending = new AsyncLocalStorage<{ link: object; recorded: Promise<void> }>()

/** Told of everything decrypted, before Baileys answers WhatsApp; while it waits, no receipt goes out. */
export type OnDecrypted = (ciphertext: Uint8Array, plaintext: Uint8Array) => Promise<void>

/**
 * Baileys' Signal repository with four things changed.
 *
 * 1. Every change of a session is written before its result is given out: Baileys commits the keys of a send after writing
 *    to the socket, so that a crash in between would use a counter twice and the recipient could not decrypt. Each
 *    operation therefore runs outside the send's transaction, as one of its own; `sendDurably` holds the frame back until
 *    the write is durable. To wait for that in here would hold up every other send: Baileys encrypts one by one
 *    for the account's own phone.
 * 2. Operations on one contact are serialised. Baileys locks by JID, but number and LID share one session.
 * 3. A plaintext is journalled in the commit that uses its key up, and recorded as an event before Baileys sends the
 *    receipt: a message is either still WhatsApp's to deliver again, or already ours.
 * 4. A contact without a LID can be written to (`answeringForAll`).
 */
export function createSignalRepository(
  auth: SignalAuthState,
  logger: ILogger,
  pnToLid: PnToLid,
  ours: { journal: Journal; onDecrypted: OnDecrypted; settled(): Promise<void>; onClose(): void },
): SignalRepositoryWithLIDStore {
  keepSessionsWhole()
  const base = DEFAULT_CONNECTION_CONFIG.makeSignalRepository(auth, logger, pnToLid && rememberingNo(pnToLid))
  const keys = auth.keys as SignalKeyStoreWithTransaction
  const outside = AsyncLocalStorage.snapshot()
  const locks = new Map<string, Promise<unknown>>()
  const mapping = mappingOutside(base.lidMapping, outside)

  /** One at a time for each key, and outside of any transaction of the caller's. */
  function alone<T>(key: string, work: () => Promise<T>): Promise<T> {
    const turn = (locks.get(key) ?? Promise.resolve()).then(() => outside(work))
    const settled = turn.catch(() => undefined)
    locks.set(key, settled)
    void settled.then(() => locks.get(key) === settled && locks.delete(key))
    return turn
  }

  /** Number and LID of a contact lead to the same key, as they lead to the same session in Baileys. */
  async function contactOf(jid: string): Promise<string> {
    const lid = jid.includes('lid') ? jid : await mapping.getLIDForPN(jid)
    return jidDecode(lid ?? jid)?.user ?? jid
  }

  async function once(key: string, ciphertext: Uint8Array, decrypt: () => Promise<Uint8Array>): Promise<Uint8Array> {
    const known = await outside(() => ours.journal.find(ciphertext))
    const plaintext =
      known ??
      (await alone(key, () =>
        keys.transaction(async () => {
          const fresh = await decrypt()
          await keys.set(ours.journal.entryFor(ciphertext, fresh))
          return fresh
        }, key),
      ))
    await ours.settled()
    await outside(() => ours.onDecrypted(ciphertext, plaintext))
    ours.journal.recorded(ciphertext)
    return plaintext
  }

  return {
    ...base,
    lidMapping: answeringForAll(base.lidMapping),
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
    processSenderKeyDistributionMessage(message) {
      return alone(message.item.groupId ?? '', () => base.processSenderKeyDistributionMessage(message))
    },
    getSenderKeyDistributionMessage(message) {
      return alone(message.group, () => base.getSenderKeyDistributionMessage(message))
    },
    validateSession: jid => outside(() => base.validateSession(jid)),
    getSessionInfo: jid => outside(() => base.getSessionInfo(jid)),
    hasSenderKey: message => outside(() => base.hasSenderKey(message)),
    deleteSession: jids => outside(() => base.deleteSession(jids)),
    async migrateSession(from, to) {
      return alone(await contactOf(to), () => base.migrateSession(from, to))
    },
    close() {
      ours.onClose()
      base.close?.()
    },
  }
}

/**
 * Baileys asks for the keys of a contact by LID, and for none where it knows no LID. Where there is none the number takes
 * its place, as an address and as the name of the session.
 */
function answeringForAll(base: LIDMappingStore): LIDMappingStore {
  const getLIDsForPNs: LIDMappingStore['getLIDsForPNs'] = async pns => {
    const found = (await base.getLIDsForPNs(pns)) ?? []
    const users = new Set(found.map(({ pn }) => userOf(pn)))
    const rest = pns.filter(pn => !users.has(userOf(pn)))
    return [...found, ...rest.map(pn => ({ pn, lid: pn }))]
  }
  const getLIDForPN: LIDMappingStore['getLIDForPN'] = pn => base.getLIDForPN(pn)
  return Object.assign(Object.create(base) as LIDMappingStore, { getLIDsForPNs, getLIDForPN })
}

/** Baileys asks for a LID at every use of a session, and forgets that there was none. */
function rememberingNo(pnToLid: NonNullable<PnToLid>): NonNullable<PnToLid> {
  const askedAt = new BoundedMap<string, number>(CONTACTS_WITHOUT_LID)
  return async pns => {
    const due = pns.filter(pn => !(performance.now() - (askedAt.get(pn) ?? Number.NEGATIVE_INFINITY) < NO_LID_FRESH_MS))
    if (due.length === 0) return []
    const found = await pnToLid(due)
    for (const pn of due) if (!found?.some(one => userOf(one.pn) === userOf(pn))) askedAt.set(pn, performance.now())
    return found
  }
}

/**
 * What is learned about numbers and LIDs is nobody's transaction: it holds, and is stored, whatever becomes of the send
 * that asked. Nor may it run in one: Baileys sets a timer of three days for each, which would keep the transaction that long.
 */
function mappingOutside<M extends SignalRepositoryWithLIDStore['lidMapping']>(
  mapping: M,
  outside: <T>(work: () => T) => T,
): M {
  const { storeLIDPNMappings, getLIDsForPNs, getPNsForLIDs } = mapping
  mapping.storeLIDPNMappings = pairs => outside(() => storeLIDPNMappings.call(mapping, pairs))
  mapping.getLIDsForPNs = numbers => outside(() => getLIDsForPNs.call(mapping, numbers))
  mapping.getPNsForLIDs = lids => outside(() => getPNsForLIDs.call(mapping, lids))
  return mapping
}
