/** The address book of a phone, in the part of the shared settings that clients read it from. */

import type { LTHashState } from 'baileys/lib/Types/index.js'
import { proto } from 'baileys/WAProto/index.js'
import type { Account } from '../account.ts'
import { isNumber, lidJid, pnJid } from '../addresses.ts'
import { hkdf } from '../signal/keys.ts'
import { type SavedContact, SimulatorError } from '../types.ts'

const COLLECTION = 'critical_unblock_low'
const KEY_BYTES = 32
export const KEY_ID = Buffer.from([0, 0, 0, 0, 0, 1])

/** All clients of an account get the same key. */
export function settingsKey(account: Account): proto.Message.IAppStateSyncKeyData {
  return {
    keyData: hkdf(account.devices.get(account.phone).identity.privateKey, 'app state key', KEY_BYTES),
    fingerprint: { rawId: 1, currentIndex: 0, deviceIndexes: [0] },
    timestamp: 1,
  }
}

export async function saveContacts(account: Account, contacts: readonly SavedContact[]): Promise<void> {
  if (!Array.isArray(contacts) || !contacts.every(({ number, name }) => isNumber(number) && typeof name === 'string'))
    throw new SimulatorError('invalid_argument', 'needs a list of contacts, each with `number` and `name`')
  // Loads WebAssembly, which few networks need.
  const { encodeSyncdPatch, newLTHashState } = await import('baileys/lib/Utils/chat-utils.js')
  await account.applyDurably(async () => {
    // Clients do not compare the hash with what was saved before.
    let state: LTHashState = { ...newLTHashState(), version: account.appState.version(COLLECTION) }
    for (const { number, name } of contacts) {
      const change = {
        syncAction: { timestamp: Date.now(), contactAction: { fullName: name, lidJid: lidJid(number) } },
        index: ['contact', pnJid(number)],
        type: COLLECTION,
        apiVersion: 2,
        operation: proto.SyncdMutation.SyncdOperation.SET,
      } as const
      const key = proto.Message.AppStateSyncKeyData.create(settingsKey(account))
      const encoded = await encodeSyncdPatch(
        { ...change, index: [...change.index] },
        KEY_ID.toString('base64'),
        state,
        async () => key,
      )
      state = encoded.state
      account.appState.add(COLLECTION, Buffer.from(proto.SyncdPatch.encode(encoded.patch).finish()))
    }
    return undefined
  })
}
