/** Reads the shared settings as the phone does. The phone has their key, and the server does not. */
import type { ChatMutation, LTHashState } from 'baileys/lib/Types/index.js'
import { proto } from 'baileys/WAProto/index.js'
import type { Account } from '../account.ts'
import { lidJid, parseAddress } from '../addresses.ts'
import { hkdf } from '../signal/keys.ts'

/** The fields of a chat in the history that its settings decide. */
type ChatSettings = Pick<proto.IConversation, 'archived' | 'pinned' | 'muteEndTime' | 'markedAsUnread'>

const CHATS = ['regular_low', 'regular_high'] as const
const KEY_BYTES = 32
export const KEY_ID = Buffer.from([0, 0, 0, 0, 0, 1])

/** All clients of an account get the same key. */
export function settingsKey(account: Account): proto.Message.AppStateSyncKeyData {
  return proto.Message.AppStateSyncKeyData.create({
    keyData: hkdf(account.devices.get(account.phone).identity.privateKey, 'app state key', KEY_BYTES),
    fingerprint: { rawId: 1, currentIndex: 0, deviceIndexes: [0] },
    timestamp: 1,
  })
}

/** The changes of a collection, oldest first, and the state that the next patch builds on. Leaves out what it cannot read. */
export async function readCollection(
  account: Account,
  name: string,
): Promise<{ changes: ChatMutation[]; state: LTHashState }> {
  // Loads WebAssembly, which few networks need.
  const { decodeSyncdMutations, newLTHashState } = await import('baileys/lib/Utils/chat-utils.js')
  const key = settingsKey(account)
  const changes: ChatMutation[] = []
  let state = newLTHashState()
  for (const patch of account.appState.since(name, 0)) {
    try {
      const { mutations } = proto.SyncdPatch.decode(patch)
      const add = (change: ChatMutation) => void changes.push(change)
      const { hash, indexValueMap } = await decodeSyncdMutations(mutations, state, async () => key, add, false)
      state = { version: 0, hash, indexValueMap }
    } catch {
      // A client may send any bytes as a patch. Other clients also leave out a patch that they cannot read.
    }
  }
  return { changes, state: { ...state, version: account.appState.version(name) } }
}

/** The settings of each chat, by the name of the chat in the history. */
export async function settingsOfChats(account: Account): Promise<Map<string, ChatSettings>> {
  const settings = new Map<string, ChatSettings>()
  for (const name of CHATS) {
    if (account.appState.version(name) === 0) continue
    for (const { index, syncAction } of (await readCollection(account, name)).changes) {
      const number = parseAddress(index[1])?.number
      const chat = number === undefined ? index[1] : lidJid(number)
      if (chat) settings.set(chat, { ...settings.get(chat), ...settingsIn(syncAction.value ?? {}) })
    }
  }
  return settings
}

function settingsIn(action: proto.ISyncActionValue): ChatSettings {
  const { archiveChatAction, pinAction, muteAction, markChatAsReadAction, timestamp } = action
  if (archiveChatAction) return { archived: archiveChatAction.archived ?? false }
  if (pinAction) return { pinned: pinAction.pinned ? Math.floor(Number(timestamp ?? 0) / 1000) : 0 }
  if (muteAction) return { muteEndTime: muteAction.muted ? (muteAction.muteEndTimestamp ?? 0) : 0 }
  if (markChatAsReadAction) return { markedAsUnread: !markChatAsReadAction.read }
  return {}
}
