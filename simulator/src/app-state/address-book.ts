/** The address book of a phone, stored in the shared settings (app state), where clients read it. */
import { proto } from 'baileys/WAProto/index.js'
import type { Account } from '../account.ts'
import { isNumber, lidJid, pnJid } from '../addresses.ts'
import type { Network } from '../network.ts'
import { notice } from '../profiles/notices.ts'
import { type SavedContact, SimulatorError } from '../types.ts'
import { node, SERVER } from '../wire/nodes.ts'
import { KEY_ID, readCollection, settingsKey } from './phone.ts'

const COLLECTION = 'critical_unblock_low'

/** Saves contacts, and notifies the linked client, which then reads them. */
export async function saveContacts(
  network: Network,
  account: Account,
  contacts: readonly SavedContact[],
): Promise<void> {
  if (!Array.isArray(contacts) || !contacts.every(({ number, name }) => isNumber(number) && typeof name === 'string'))
    throw new SimulatorError('invalid_argument', 'needs a list of contacts, each with `number` and `name`')
  // Loads WebAssembly, which few networks need.
  const { encodeSyncdPatch } = await import('baileys/lib/Utils/chat-utils.js')
  await account.applyDurably(async () => {
    let { state } = await readCollection(account, COLLECTION)
    for (const { number, name } of contacts) {
      const change = {
        syncAction: { timestamp: Date.now(), contactAction: { fullName: name, lidJid: lidJid(number) } },
        index: ['contact', pnJid(number)],
        type: COLLECTION,
        apiVersion: 2,
        operation: proto.SyncdMutation.SyncdOperation.SET,
      } as const
      const key = settingsKey(account)
      const encoded = await encodeSyncdPatch(
        { ...change, index: [...change.index] },
        KEY_ID.toString('base64'),
        state,
        async () => key,
      )
      state = encoded.state
      account.appState.add(COLLECTION, Buffer.from(proto.SyncdPatch.encode(encoded.patch).finish()))
    }
    const version = account.appState.version(COLLECTION).toString()
    return notice(
      network,
      account,
      { from: SERVER, type: 'server_sync' },
      node('collection', { name: COLLECTION, version }),
    )
  })
}
