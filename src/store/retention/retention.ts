import type { InstanceId } from '../../domain/ids.ts'

/** How much of a contact was erased. `kept`: messages that must stay for now. */
export interface ErasedContact {
  messages: number
  events: number
  files: number
  kept: number
}

export interface Retention {
  /**
   * Erases the messages of a contact in both directions, also those in groups, the received files, and what else names it. Events lose their
   * content. Keeps messages that are queued, younger than 25 hours if they were sent, or whose events are still being posted.
   * @param contact a number or a LID
   */
  eraseContact(instanceId: InstanceId, contact: string, now: number): Promise<ErasedContact>
  /**
   * Erases a limited number of rows that are older than `before`: settled and incoming messages without an unfinished
   * delivery, and events with their deliveries and attempts. Also erases expired idempotency keys and expired look-ups of numbers.
   * @returns the number of erased rows; 0 if nothing is left to erase
   */
  step(before: number, now: number): Promise<number>
}
