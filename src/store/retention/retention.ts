import type { EventId, InstanceId, MessageId } from '../../domain/ids.ts'
import type { ChatEntry } from '../conversations/conversations.ts'

/** How much of a contact was erased. `kept`: messages, and events about groups, that must stay for now. */
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

/** An event of a message of a contact, or one that reports the contact as a member of a group. */
export interface ContactEvent {
  id: EventId
  /** Null: it is about a group. */
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

/** What is stored of a contact. Messages and events are read while they are iterated, newest first, each time anew. */
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
   * Finds the data of a contact: what `eraseContact` erases, and what it keeps for now. Not messages that are stored later than `now`.
   * @param contact a number or a LID
   */
  openContact(instanceId: InstanceId, contact: string, now: number): Promise<ContactData>
  /**
   * Erases the messages of a contact in both directions, also those in groups, the received files, and what else names it. Events lose their
   * content, and those about groups this member. Keeps messages that are queued, younger than 25 hours if they were sent (scheduled ones also for 25 hours after they ended), or whose events are still being posted.
   * @param contact a number or a LID
   */
  eraseContact(instanceId: InstanceId, contact: string, now: number): Promise<ErasedContact>
  /**
   * Erases a limited number of rows that are older than `before`: settled messages, whose age counts from their last event, and
   * incoming messages, both without an unfinished delivery, and events with their deliveries and attempts. Also erases expired idempotency keys and expired look-ups of numbers.
   * A failure concerning one instance is thrown after the other instances were handled.
   * @param stopping ends the step early
   * @returns the number of erased rows; 0 if nothing is left to erase
   */
  step(before: number, now: number, stopping?: AbortSignal): Promise<number>
}
