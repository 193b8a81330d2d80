import { SenderKeyRecord, SenderKeyState } from 'baileys/lib/Signal/Group/index.js'

let patched = false

/**
 * Corrects two faults of Baileys 7, after which the messages of a group that others have overtaken cannot be decrypted.
 *
 * `sender-key-record.js`: a member's group key comes again with each message that was requested again. It is added as one
 * more state, and the sixth removes the first, with the position of the chain and the keys of overtaken messages. Here, as
 * in libsignal's own implementation, a known key stays as it is.
 *
 * `sender-key-state.js`: the keys of overtaken messages come back from the store as plain objects.
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
