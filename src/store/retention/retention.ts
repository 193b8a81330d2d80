export interface Retention {
  /**
   * Erases a limited number of rows that are older than `before`: settled and incoming messages without an unfinished
   * delivery, and events with their deliveries and attempts. Also erases expired idempotency keys and expired look-ups of numbers.
   * @returns the number of erased rows; 0 if nothing is left to erase
   */
  step(before: number, now: number): Promise<number>
}
