import type { PasskeyPlay } from '../passkey/passkey-play.ts'
import type { LinkingFailure } from './linking-failures.ts'
import type { Rule } from './rule.ts'

/** A command that makes the network misbehave. `account` and `contact` are phone numbers. */
export type Order =
  /** Sets a rule until it is removed. The answer has its ID. */
  | { kind: 'rule'; rule: Rule }
  | { kind: 'remove_rule'; id: number }
  /** Releases the oldest `count` held stanzas, or all of them. The answer has the number of released stanzas. */
  | { kind: 'release'; count?: number }
  /**
   * Removes all rules and releases the held stanzas. Undoes `refuse_logins`, `qr_codes`, `fail_linking`,
   * `play_passkey`, `no_restart`, `batches`, `phone_copies`, `media_retries`, `look_up` and `restrict`.
   */
  | { kind: 'clear' }
  /** The time that every stanza takes from a client to the network, and again from the network to a client. */
  | { kind: 'latency'; ms: number }
  /** Restarts the random choices (`probability`, `jitterMs`) from this seed. */
  | { kind: 'seed'; seed: number }
  /** Sends the client this stanza unchanged. */
  | { kind: 'stanza'; account: string; stanza: StanzaText }
  /** Cuts the client's socket without a stanza. */
  | { kind: 'cut'; account: string }
  /** Sends the client a stream error and ends its socket. */
  | { kind: 'stream_error'; account: string; code?: string; conflict?: 'replaced' | 'device_removed' }
  /** The next `count` logins, of this account or of any, fail with this reason. */
  | { kind: 'refuse_logins'; reason: string; count: number; account?: string }
  /** A client that waits to be linked is offered this many QR codes. WhatsApp offers 6. */
  | { kind: 'qr_codes'; count: number }
  /**
   * The next `count` attempts to link a client fail, or all of them. `passkey`: WhatsApp asks for a passkey. `refresh`: it asks
   * for a new code. `refuse_version`: 405 instead of codes. `refuse_device`: the socket ends instead of codes. `refuse_code`:
   * no pairing code. `device_limit`: the phone has too many devices. `phone_offline`: the phone goes offline after the code was
   * scanned or typed. `bad_signature`: the phone signs with another secret. `unauthorized`: 401 after the scan.
   */
  | { kind: 'fail_linking'; how: LinkingFailure; count?: number }
  /**
   * From now on WhatsApp asks for a passkey when a client is linked to the account; with `required: false` it does not.
   * `credential` registers the account's passkey; `publicKey` is what a browser's `getPublicKey()` returns. Both are
   * base64url.
   */
  | { kind: 'require_passkey'; account: string; required?: boolean; credential?: { id: string; publicKey: string } }
  /** How the next `count` ceremonies with a passkey differ, or all of them. */
  | { kind: 'play_passkey'; how: PasskeyPlay; count?: number }
  /** Answered with the code that the account's phone shows during a ceremony. */
  | { kind: 'passkey_code'; account: string }
  /** A newly linked client is not asked to reconnect (515): it is logged in on the socket that linked it. */
  | { kind: 'no_restart' }
  /**
   * From now on the network announces at login how many stanzas it has kept for a client, sends the first 5, and then as many as the
   * client requests with `offline_batch`. New stanzas follow after the last kept one, as on WhatsApp. Without this order all are
   * sent at once.
   */
  | { kind: 'batches' }
  /** From now on phones answer requests for copies of messages. Without this order they do not answer, as if they were off. */
  | { kind: 'phone_copies' }
  /**
   * How phones answer a client that asks for a media file to be uploaded again. `upload` (the default): the file is uploaded
   * if the phone still has it, else `not_found`. `none`: no answer, as if they were off.
   */
  | { kind: 'media_retries'; answer: MediaRetryAnswer }
  /** Authorizations for uploads that clients hold are refused with 401 from now on. */
  | { kind: 'expire_media_auth' }
  /** The files that the account's client and contacts have uploaded can no longer be downloaded (410). Phones keep them. */
  | { kind: 'expire_media'; account: string }
  /** Look-ups of `number` return another number, or none. */
  | { kind: 'look_up'; number: string; finds: string | null }
  /**
   * For this many seconds the account may not start new chats (463); null ends the restriction. The client is notified
   * unless `notify` is false, and learns the end unless `saysUntil` is false.
   */
  | { kind: 'restrict'; account: string; seconds: number | null; notify?: boolean; saysUntil?: boolean }
  /**
   * The contact sends a receipt for a message, regardless of earlier receipts. Without `type` it is a delivery receipt.
   */
  | (Receipt & { kind: 'receipt'; type?: 'read' | 'played' | 'inactive'; address?: 'lid' | 'pn' })
  /** The contact asks for a message again, as if it could not decrypt it. */
  | (Receipt & { kind: 'ask_again' })
  /** The contact has set up its phone again: new keys, no sessions. The client is notified. */
  | { kind: 'change_identity'; account: string; contact: string }
  /** The contact has linked one more device. The client is notified unless `notify` is false. */
  | { kind: 'add_device'; account: string; contact: string; notify?: boolean }
  /** The contact writes `count` texts, each followed by its number: all at once, or `perSecond` a second. */
  | { kind: 'write'; from: string; to: string; text: string; count: number; perSecond?: number; group?: string }
  /** The account's owner writes a text on the phone to a contact or a group. The client gets its copy. */
  | { kind: 'write_on_phone'; account: string; to: string; text: string }

export const MEDIA_RETRY_ANSWERS = ['upload', 'not_found', 'decryption_error', 'general_error', 'none'] as const
export type MediaRetryAnswer = (typeof MEDIA_RETRY_ANSWERS)[number]

export interface StanzaText {
  tag: string
  attrs?: Readonly<Record<string, string>>
  content?: readonly StanzaText[] | string
  /** The content as bytes, instead of `content`. */
  base64?: string
}

interface Receipt {
  account: string
  contact: string
  /** WhatsApp's ID of the message. */
  id: string
  group?: string
}

export interface OrderResult {
  rule?: number
  released?: number
  /** Null: the phone shows none. */
  passkeyCode?: string | null
}
