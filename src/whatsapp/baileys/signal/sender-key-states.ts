import { SenderKeyRecord, SenderKeyState } from 'baileys/lib/Signal/Group/index.js'

let patched = false

/**
 * Fixes two defects of Baileys 7, because of which group messages that arrive out of order cannot be decrypted.
 *
 * `sender-key-record.js`: each message that was requested again contains the member's sender key again. Baileys adds it as a
 * new state, and the sixth state evicts the first one, which has the position of the chain and the keys of skipped messages.
 * Here, as in libsignal's own implementation, a known key is left unchanged.
 *
 * `sender-key-state.js`: the stored keys of skipped messages are read as plain objects. Here they become Buffers again.
 */
export function keepSenderKeysWhole(): void {
  if (patched) return
  patched = true
  const add = SenderKeyRecord.prototype.addSenderKeyState
  SenderKeyRecord.prototype.addSenderKeyState = function (id, iteration, chainKey, signatureKey) {
    const known = this.getSenderKeyState(id)
    if (known && Buffer.from(known.getSigningKeyPublic()).equals(signatureKey)) return
    add.call(this, id, iteration, chainKey, signatureKey)
  }
  const remove = SenderKeyState.prototype.removeSenderMessageKey
  SenderKeyState.prototype.removeSenderMessageKey = function (iteration) {
    const kept = this.getStructure().senderMessageKeys.find(key => key.iteration === iteration)
    if (kept) kept.seed = Buffer.from(kept.seed)
    return remove.call(this, iteration)
  }
}
