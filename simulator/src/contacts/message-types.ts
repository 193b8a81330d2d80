import type { ContactMedia } from '../media/media-types.ts'

/** Exactly one of `text`, `media`, `reaction`, `edit`, `delete`, `poll`, `vote` and `content`. */
export interface MessageKinds {
  text?: string
  /** A file, with its caption, instead of a text. The contact encrypts it with a new key and uploads it. */
  media?: ContactMedia
  /** Reacts to the message with this ID; an empty `emoji` removes the reaction. */
  reaction?: { to: string; emoji: string }
  /** Gives the writer's own message another text, within 15 minutes. */
  edit?: { id: string; text: string }
  /**
   * Deletes the message with this ID for everyone, within 60 hours: one of the writer's own or, if the writer is an
   * admin of the group, any message in it.
   */
  delete?: string
  /** `selectable`: how many options a voter may choose, 1 by default; 0 for any number. */
  poll?: { name: string; options: string[]; selectable?: number }
  /** Chooses these options of a poll, and no others. */
  vote?: { poll: string; options: string[] }
  /** Any other message, as JSON with the field names of WhatsApp's `Message`, such as `{"locationMessage": …}`. */
  content?: object
  /** WhatsApp's ID of the message that it quotes. */
  quote?: string
}

/** What the owner of an account writes on the phone. */
export interface OwnerMessage extends MessageKinds {
  /** Phone number of the account, digits only. */
  phone: string
  /** Phone number of the contact, digits only, or a group JID. */
  to: string
}

/** What a contact writes. */
export interface ContactMessage extends MessageKinds {
  /** Phone number of the contact, digits only. */
  from: string
  /** Phone number of the account it goes to, digits only. */
  to: string
  /** Group JID, when it is written in a group. */
  group?: string
  /** The contact's push name; kept for the contact's later messages. */
  name?: string
  /** Its ciphertext cannot be decrypted, however often it is delivered, until the client asks for another. */
  undecryptable?: boolean
  /** The client gets it without content and can request a copy from the phone. */
  unavailable?: boolean
}
