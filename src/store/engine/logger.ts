/** Where the store tells what nobody waits for. */
export interface StoreLogger {
  warn(fields: object, message: string): void
}
