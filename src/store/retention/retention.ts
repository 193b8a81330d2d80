export interface Retention {
  /**
   * Erases one small step of what is older than `before`: messages that are not queued, sent and received, and their events once nothing
   * is owed of them, finished deliveries with their attempts, expired idempotency keys, and what is out of date about numbers.
   * Returns how many rows went; 0 when nothing is left to do.
   */
  step(before: number, now: number): Promise<number>
}
