import type { EventId, InstanceId, MessageId } from '../../domain/ids.ts'
import type { ChatEntry } from '../conversations/conversations.ts'

/** How much of a contact was erased. `kept`: messages, and events without a message of the contact, that must stay for now. */
export interface ErasedContact {
  messages: number
  events: number
  files: number
  kept: number
}

/** A message or command of a contact. */
export interface ContactMessage {
  entry: ChatEntry
  /** Its file, or the image of its link preview. */
  mediaId: string | null
}

/**
 * An event of a message of a contact, or one that names the contact without such a message: it is about a member of a group,
 * about a message that is unknown or erased, or about an edit or deletion by the contact.
 */
export interface ContactEvent {
  id: EventId
  /** Null: it is about a group, or about a message that Pombal does not know. */
  messageId: MessageId | null
  createdAt: number
  /** As posted; of an event about a group, without the other people. */
  body: string
  attempts: readonly {
    url: string
    startedAt: number
    status: number | null
    error: string | null
    responseExcerpt: string | null
  }[]
}

/**
 * The stored data of a contact. Every iteration reads the messages or events again, the newest first, but those of
 * groups after those of the chat, and events without a message of the contact last.
 */
export interface ContactData {
  /** All numbers and LIDs of the person. */
  names: readonly string[]
  /** Other rows that name the person, by table. */
  entries: Readonly<Record<string, readonly object[]>>
  messages(): AsyncIterable<ContactMessage>
  events(): AsyncIterable<ContactEvent>
}

export interface Retention {
  /**
   * Finds the data of a contact, including the rows that `eraseContact` would keep for now, but no messages that are
   * stored after `now`.
   * @param contact a number or a LID
   */
  openContact(instanceId: InstanceId, contact: string, now: number): Promise<ContactData>
  /**
   * Erases the messages of a contact in both directions, those that the person wrote in groups, the instance's reactions to
   * the latter and its deletions of them, and the received files. The instance's replies to the person in groups lose the
   * quotation, and read marks on the person's messages there lose the author.
   * Events lose their content, including those of unknown messages, but events about groups lose only this member. Keeps messages that are queued, sent
   * messages that are younger than 25 hours (a scheduled one counts from when it was sent or failed), messages whose
   * file a queued message contains, messages whose events are still being posted, and messages of the chat that are
   * recorded during the erasure. The person's names in the contact list are erased in any case. If nothing is kept, the other
   * rows that name the contact are erased too.
   * @param contact a number or a LID
   */
  eraseContact(instanceId: InstanceId, contact: string, now: number): Promise<ErasedContact>
  /**
   * Erases a limited number of rows that are older than `before`: settled messages, whose age counts from their last
   * event, incoming messages, and events with their deliveries and attempts. Rows with an unfinished delivery stay, and
   * so do incoming messages whose file is stored, with their events.
   * Also erases expired idempotency keys, look-ups of numbers and linking links, and deleted endpoints without
   * unfinished deliveries. A failure of one instance is thrown after the other instances were handled.
   * @param stopping ends the step early
   * @returns the number of erased rows; 0 if nothing is left to erase
   */
  step(before: number, now: number, stopping?: AbortSignal): Promise<number>
}
