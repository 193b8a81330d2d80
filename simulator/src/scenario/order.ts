import type { Rule } from './rule.ts'

/** A command to misbehave. `account` and `contact` are phone numbers. */
export type Order =
  /** From now on, until it is removed. Answered with its id. */
  | { kind: 'rule'; rule: Rule }
  | { kind: 'remove_rule'; id: number }
  /** The oldest `count` held stanzas go on, or all of them. Answered with how many did. */
  | { kind: 'release'; count?: number }
  /** All rules, login refusals, look-ups, restrictions and the number of QR codes are forgotten; what is held goes on. */
  | { kind: 'clear' }
  /** What is left to chance (`probability`, `jitterMs`) starts anew with this seed. */
  | { kind: 'seed'; seed: number }
  /** The client is sent this stanza, as it is. */
  | { kind: 'stanza'; account: string; stanza: StanzaText }
  /** The client's socket ends without a word. */
  | { kind: 'cut'; account: string }
  /** The client is told a stream error, and its socket ends. */
  | { kind: 'stream_error'; account: string; code?: string; conflict?: 'replaced' | 'device_removed' }
  /** The next logins, of this account or of any, fail with this reason. */
  | { kind: 'refuse_logins'; reason: string; count: number; account?: string }
  /** A client that is to be linked is offered so many QR codes. WhatsApp offers 6. */
  | { kind: 'qr_codes'; count: number }
  /** A client that was linked is not told to come back (515): it is let in over the socket that linked it. */
  | { kind: 'no_restart' }
  /** Look-ups of `number` find another number, or nothing. */
  | { kind: 'look_up'; number: string; finds: string | null }
  /**
   * For so long the account may write to nobody new (463); null: no longer. The client is told, unless `told` is false, and
   * until when, unless `saysUntil` is false. Whole seconds.
   */
  | { kind: 'restrict'; account: string; seconds: number | null; told?: boolean; saysUntil?: boolean }
  /** The contact sends a receipt for a message, whatever it has sent before. Without `type` it is a delivery receipt. */
  | (Receipt & { kind: 'receipt'; type?: 'read' | 'played' | 'inactive'; address?: 'lid' | 'pn' })
  /** The contact asks for a message again, as if it could not decrypt it. */
  | (Receipt & { kind: 'ask_again' })
  /** The contact has set up its phone anew: other keys, no sessions. The client is told. */
  | { kind: 'change_identity'; account: string; contact: string }
  /** The contact has linked one more device. The client is told, unless `told` is false. */
  | { kind: 'add_device'; account: string; contact: string; told?: boolean }
  /** The contact writes so many texts, each with its number behind it: at once, or so many a second. */
  | { kind: 'write'; from: string; to: string; text: string; count: number; perSecond?: number; group?: string }
  /** The account's owner writes a text on the phone, to a contact or a group: the client gets its copy. */
  | { kind: 'write_on_phone'; account: string; to: string; text: string }

/** A stanza as JSON has it. */
export interface StanzaText {
  tag: string
  attrs?: Readonly<Record<string, string>>
  content?: readonly StanzaText[] | string
  /** The content as bytes, in place of `content`. */
  base64?: string
}

interface Receipt {
  account: string
  contact: string
  /** WhatsApp's id of the message. */
  id: string
  group?: string
}

/** What an order is answered with. */
export interface Obeyed {
  /** The id of the rule that was set. */
  rule?: number
  /** How many stanzas were released. */
  released?: number
}
