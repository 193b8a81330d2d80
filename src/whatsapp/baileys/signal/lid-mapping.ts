import { AsyncLocalStorage } from 'node:async_hooks'
import {
  type AuthenticationCreds,
  isLidUser,
  jidDecode,
  type SignalAuthState,
  type SignalRepositoryWithLIDStore,
} from 'baileys'
import { isSelf, isWellFormed, type Self } from '../addresses.ts'

export type LIDMappingStore = SignalRepositoryWithLIDStore['lidMapping']
type Pair = Parameters<LIDMappingStore['storeLIDPNMappings']>[0][number]

/**
 * Changes Baileys' mapping between numbers and LIDs:
 *
 * - Its methods run outside any transaction: a learned pair is stored even if the send that queried it fails. Baileys also
 *   creates a timer of three days for each pair, which would retain the transaction that long.
 * - A LID has a number only while the number has that LID (`findNumbers`).
 * - A malformed address has no pair. WhatsApp may end the connection if it is asked about one.
 * - A pair of our own number or LID with somebody else's is not stored. Messages to that person would go to ourselves.
 */
export function guardMapping(mapping: LIDMappingStore, { creds, keys }: SignalAuthState): LIDMappingStore {
  const { bind } = AsyncLocalStorage
  const store = mapping.storeLIDPNMappings.bind(mapping)
  mapping.storeLIDPNMappings = bind((pairs: Pair[]) => store(pairs.filter(pair => !isMixed(pair, selfOf(creds)))))
  const find = mapping.getLIDsForPNs.bind(mapping)
  mapping.getLIDsForPNs = bind((pns: string[]) => find(pns.filter(isWellFormed)))
  mapping.getPNsForLIDs = bind((lids: string[]) => findNumbers(keys, lids))
  return mapping
}

/** Baileys passes all credentials of the account, but its type names only the keys. */
function selfOf(creds: SignalAuthState['creds']): Self {
  return (creds as Partial<AuthenticationCreds>).me ?? {}
}

/** True if one side is ours and the other is not. False if our LID is unknown: the other side may be ours. */
function isMixed({ lid, pn }: Pair, self: Self): boolean {
  return self.lid !== undefined && isSelf(lid, self) !== isSelf(pn, self)
}

/**
 * Replaces Baileys' function. When a number gets another LID, Baileys keeps the row from the old LID to the number, and
 * may even store the old pair again when it reads that row. Messages to the person who had the number before would
 * go to the person who has it now.
 */
async function findNumbers(keys: SignalAuthState['keys'], lids: readonly string[]): Promise<Pair[] | null> {
  const people = lids.filter(isWellFormed).flatMap(lid => {
    const { user, device = 0 } = (isLidUser(lid) && jidDecode(lid)) || {}
    return user ? [{ lid, user, device }] : []
  })
  const reverse = people.map(({ user }) => `${user}_reverse`)
  const numbers = await keys.get('lid-mapping', reverse)
  const current = await keys.get('lid-mapping', Object.values(numbers))
  const pairs = people.flatMap(({ lid, user, device }) => {
    const number = numbers[`${user}_reverse`]
    return number && current[number] === user ? [{ lid, pn: `${number}:${device}@s.whatsapp.net` }] : []
  })
  return pairs.length > 0 ? pairs : null
}
